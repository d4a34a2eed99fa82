//! What the trusted parts import: the language, the machine and the stages' products, nothing of the searches.

use std::path::Path;

/// Modules that hold no search: data of machines and products, and the execution of code.
const ALLOWED: [&str; 13] = [
    "allocation",
    "call",
    "check",
    "code",
    "execute",
    "finished",
    "layout",
    "machine",
    "program",
    "program_run",
    "random",
    "schedule",
    "replay",
];

fn imports(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a source file");
    let file = syn::parse_file(&text).expect("Rust");
    let mut list = Vec::new();
    for item in file.items {
        if let syn::Item::Use(item) = item {
            paths(&item.tree, String::new(), &mut list);
        }
    }
    // Paths that are written out in the code count too.
    list.extend(text.match_indices("crate::").map(|(place, _)| {
        let rest = &text[place..];
        rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == ':' || *letter == '_').collect()
    }));
    list
}

fn paths(tree: &syn::UseTree, before: String, list: &mut Vec<String>) {
    match tree {
        syn::UseTree::Path(path) => paths(&path.tree, format!("{before}{}::", path.ident), list),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| paths(tree, before.clone(), list)),
        syn::UseTree::Name(name) => list.push(format!("{before}{}", name.ident)),
        syn::UseTree::Rename(name) => list.push(format!("{before}{}", name.ident)),
        syn::UseTree::Glob(_) => list.push(format!("{before}*")),
    }
}

#[test]
fn checker_and_replay_import_nothing_of_the_searches() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![source.join("replay.rs"), source.join("call.rs"), source.join("program_run.rs")];
    files.extend(std::fs::read_dir(source.join("check")).expect("a folder").map(|entry| entry.expect("an entry").path()));
    let mut seen = 0;
    for path in &files {
        for import in imports(path) {
            let Some(module) = import.strip_prefix("crate::").and_then(|rest| rest.split("::").next()) else { continue };
            seen += 1;
            assert!(ALLOWED.contains(&module), "{} imports crate::{module}", path.display());
        }
    }
    assert!(seen > 10, "{seen} imports");
}
