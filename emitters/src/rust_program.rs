//! A program printed as structured Rust, shared by the forms whose compiler allocates registers: one `let` for each instruction, loops as loops,
//! carried values as variables. What a row and a value look like is the form's affair ([`RowText`]).

use crate::rust_values::Names;
use crate::{EmitError, Request};
use kgen_schedulers::finished::FinishedFunction;
use kgen_schedulers::machine::{ControlKind, Row};
use kgen_schedulers::program::{Instruction, Loop, Operand, Program, ValueId};
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit_mut::VisitMut;

/// How a form writes rows and values.
pub(crate) trait RowText {
    /// The form's name.
    fn form(&self) -> &'static str;
    /// The type of a value's variable; `None` where it follows from what it is set to.
    fn type_of(&self, value: ValueId) -> Option<TokenStream>;
    /// The results, as a tuple where there are several; of a jump, then whether it is taken. `results` says which of the row's written operands count.
    fn expression(&self, names: &Names, row: &Row, instruction: &Instruction, results: &[usize]) -> Result<syn::Expr, EmitError>;
    /// Numbers of the written operands that the row's text gives.
    fn results_of(&self, row: &Row) -> Vec<usize>;
    /// The instruction only gives a name to something that has one already.
    fn is_name(&self, row: &Row, instruction: &Instruction) -> bool;
}

/// Takes parentheses away where nothing stands beside them.
struct LooseParentheses;

fn without_parentheses(expression: &mut syn::Expr) {
    while let syn::Expr::Paren(inner) = expression {
        *expression = std::mem::replace(&mut *inner.expr, syn::Expr::PLACEHOLDER);
    }
}

impl VisitMut for LooseParentheses {
    fn visit_expr_mut(&mut self, expression: &mut syn::Expr) {
        syn::visit_mut::visit_expr_mut(self, expression);
        match expression {
            syn::Expr::Call(call) => call.args.iter_mut().for_each(without_parentheses),
            syn::Expr::MethodCall(call) => call.args.iter_mut().for_each(without_parentheses),
            syn::Expr::If(choice) => without_parentheses(&mut choice.cond),
            syn::Expr::Tuple(tuple) => tuple.elems.iter_mut().for_each(without_parentheses),
            syn::Expr::Paren(outer) => without_parentheses(&mut outer.expr),
            _ => {}
        }
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        syn::visit_mut::visit_block_mut(self, block);
        for statement in &mut block.stmts {
            match statement {
                syn::Stmt::Local(local) => local.init.iter_mut().for_each(|init| without_parentheses(&mut init.expr)),
                syn::Stmt::Expr(value, _) => without_parentheses(value),
                _ => {}
            }
        }
    }
}

/// The printer of one function's body.
pub(crate) struct ProgramText<'a, R> {
    request: &'a Request<'a>,
    function: &'a FinishedFunction,
    program: &'a Program,
    /// Names in use.
    pub names: Names,
    /// Values that reach memory or a branch; the others are not printed.
    pub needed: BTreeSet<ValueId>,
    /// The form's rows.
    pub rows: R,
}

impl<'a, R: RowText> ProgramText<'a, R> {
    /// A printer; values without a name get one after the source's.
    pub fn new(request: &'a Request<'a>, function: &'a FinishedFunction, mut names: Names, needed: BTreeSet<ValueId>, rows: R) -> Self {
        let program = &function.program;
        // A carried value is one variable from before the loop to after it.
        let mut same: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        for carried in program.loops.iter().flat_map(|lap| &lap.carried) {
            same.insert(carried.last, carried.current);
        }
        for (index, value) in program.values.iter().enumerate() {
            let id = ValueId(index as u32);
            if !same.contains_key(&id) && !names.places.contains_key(&id) && needed.contains(&id) {
                // Values read from tables are called like them; variables are not written in capitals.
                let name = names.claim(&value.name.to_lowercase()).to_string();
                let place = match names.bases.get(&id) {
                    Some(base) => format!("{base}[{name}..]"),
                    None => name.clone(),
                };
                if names.bases.contains_key(&id) {
                    names.distances.insert(id, name);
                }
                names.places.insert(id, place);
            }
        }
        for (last, current) in &same {
            if let Some(name) = names.places.get(current).cloned() {
                names.places.insert(*last, name);
            }
            if let Some(name) = names.distances.get(current).cloned() {
                names.distances.insert(*last, name);
            }
        }
        Self { request, function, program, names, needed, rows }
    }

    /// The whole body.
    ///
    /// # Errors
    /// What the form cannot say.
    pub fn body(&mut self) -> Result<TokenStream, EmitError> {
        self.blocks(0, self.program.blocks.len(), None)
    }

    fn unprintable(&self, reason: impl Into<String>) -> EmitError {
        EmitError::Unprintable { form: self.rows.form(), function: self.program.name.clone(), reason: reason.into() }
    }

    fn ident(&self, value: ValueId) -> Result<Ident, EmitError> {
        let name = self.names.value_text(value).and_then(|name| syn::parse_str::<Ident>(name).ok());
        name.ok_or_else(|| self.unprintable(format!("`{}` has no variable of its own", self.program[value].name)))
    }

    /// The blocks `first..end`; `inside` is the loop whose body they are.
    fn blocks(&mut self, first: usize, end: usize, inside: Option<&Loop>) -> Result<TokenStream, EmitError> {
        let program = self.program;
        let mut tokens = TokenStream::new();
        let mut skip: Option<Ident> = None;
        let mut block = first;
        while block < end {
            let starts = |lap: &&Loop| lap.first.0 as usize == block && inside.is_none_or(|outer| outer.first != lap.first);
            if let Some(lap) = program.loops.iter().find(starts) {
                let (declared, looped) = self.lap(lap)?;
                let guarded = match skip.take() {
                    Some(skip) => quote! { if !#skip { #looped } },
                    None => looped,
                };
                tokens.extend(quote! { #declared #guarded });
                block = lap.last.0 as usize + 1;
                continue;
            }
            for slot in &self.function.schedule.blocks[block].slots {
                let instruction = &program.blocks[block].instructions[slot.instruction as usize];
                let row = &self.request.machine[instruction.row];
                if row.control.is_none() {
                    tokens.extend(self.statement(row, instruction)?);
                    continue;
                }
                let target = instruction.operands.iter().find_map(|operand| match operand {
                    Operand::Block(target) => Some(target.0 as usize),
                    _ => None,
                });
                let back = inside.is_some_and(|lap| target == Some(lap.first.0 as usize) && lap.last.0 as usize == block);
                let skips = program.loops.iter().any(|lap| lap.first.0 as usize == block + 1 && target == Some(lap.last.0 as usize + 1));
                if back {
                    let again = self.names.claim("again");
                    tokens.extend(self.jump(row, instruction, &again)?);
                    let lap = inside.ok_or_else(|| self.unprintable("a jump back outside of a loop"))?;
                    tokens.extend(self.next_round(lap)?);
                    tokens.extend(quote! { if !#again { break; } });
                } else if skips {
                    let name = self.names.claim("skip");
                    tokens.extend(self.jump(row, instruction, &name)?);
                    skip = Some(name);
                } else {
                    return Err(self.unprintable(format!("`{}` in block {block} is no part of a loop", row.name)));
                }
            }
            block += 1;
        }
        Ok(tokens)
    }

    /// A loop: its variables, and itself.
    fn lap(&mut self, lap: &Loop) -> Result<(TokenStream, TokenStream), EmitError> {
        let mut declared = TokenStream::new();
        for carried in lap.carried.iter().filter(|carried| self.needed.contains(&carried.current)) {
            let (name, initial) = (self.ident(carried.current)?, self.text_of(carried.initial)?);
            let ty = self.rows.type_of(carried.current).map(|ty| quote! { : #ty });
            declared.extend(quote! { let mut #name #ty = #initial; });
        }
        let body = self.blocks(lap.first.0 as usize, lap.last.0 as usize + 1, Some(lap))?;
        Ok((declared, quote! { loop { #body } }))
    }

    /// Carried values move on, all at once where one is another's next.
    fn next_round(&self, lap: &Loop) -> Result<TokenStream, EmitError> {
        let moved: Vec<_> =
            lap.carried.iter().filter(|carried| self.needed.contains(&carried.current) && carried.next != carried.current).collect();
        let names = moved.iter().map(|carried| self.ident(carried.current)).collect::<Result<Vec<_>, _>>()?;
        let next = moved.iter().map(|carried| self.text_of(carried.next)).collect::<Result<Vec<_>, _>>()?;
        let crossed = moved.iter().any(|carried| moved.iter().any(|other| other.current == carried.next));
        Ok(if crossed {
            quote! { (#(#names),*) = (#(#next),*); }
        } else {
            quote! { #(#names = #next;)* }
        })
    }

    fn text_of(&self, value: ValueId) -> Result<syn::Expr, EmitError> {
        let name = self.names.value_text(value);
        let parsed = name.and_then(|name| syn::parse_str(name).ok());
        parsed.ok_or_else(|| self.unprintable(format!("`{}` has no variable", self.program[value].name)))
    }

    /// Patterns and types of the results that the row's text gives.
    fn results(&self, row: &Row, instruction: &Instruction) -> Result<Vec<(TokenStream, Option<TokenStream>)>, EmitError> {
        let given = self.rows.results_of(row);
        for (number, value) in instruction.writes(self.request.machine) {
            if self.needed.contains(&value) && !given.contains(&number) {
                let name = &row.operands[number].name;
                return Err(self.unprintable(format!("the text of `{}` does not give its result `{name}`", row.name)));
            }
        }
        given
            .iter()
            .map(|number| match &instruction.operands[*number] {
                Operand::Value(value) if self.needed.contains(value) => {
                    let name = self.ident(*value)?;
                    Ok((quote! { #name }, self.rows.type_of(*value)))
                }
                Operand::Value(_) | Operand::Unused => Ok((quote! { _ }, Some(quote! { _ }))),
                _ => Err(self.unprintable(format!("result `{}` of `{}` is no value", row.operands[*number].name, row.name))),
            })
            .collect()
    }

    fn expression(&self, row: &Row, instruction: &Instruction) -> Result<syn::Expr, EmitError> {
        let mut parsed = self.rows.expression(&self.names, row, instruction, &self.rows.results_of(row))?;
        // Texts are made to stand inside of others, so they bring more parentheses than they need.
        LooseParentheses.visit_expr_mut(&mut parsed);
        without_parentheses(&mut parsed);
        Ok(parsed)
    }

    fn statement(&self, row: &Row, instruction: &Instruction) -> Result<TokenStream, EmitError> {
        let used = instruction.writes(self.request.machine).any(|(_, value)| self.needed.contains(&value));
        let silent = instruction.memory.as_ref().is_none_or(|access| !access.write) && row.operands.iter().any(|operand| operand.written);
        if self.rows.is_name(row, instruction) || (silent && !used) {
            return Ok(TokenStream::new());
        }
        let results = self.results(row, instruction)?;
        let expression = self.expression(row, instruction)?;
        Ok(match &results[..] {
            [] => quote! { #expression; },
            [(name, ty)] => {
                let ty = ty.as_ref().map(|ty| quote! { : #ty });
                quote! { let #name #ty = #expression; }
            }
            several => {
                let names = several.iter().map(|(name, _)| name);
                let types = several.iter().map(|(_, ty)| ty.clone().unwrap_or_else(|| quote! { _ }));
                quote! { let (#(#names),*): (#(#types),*) = #expression; }
            }
        })
    }

    /// Results of a jump, and whether it is taken.
    fn jump(&self, row: &Row, instruction: &Instruction, taken: &Ident) -> Result<TokenStream, EmitError> {
        if row.control == Some(ControlKind::Jump) {
            return Ok(quote! { let #taken = true; });
        }
        let results = self.results(row, instruction)?;
        let expression = self.expression(row, instruction)?;
        let names = results.iter().map(|(name, _)| name);
        Ok(if results.is_empty() {
            quote! { let #taken: bool = #expression; }
        } else {
            quote! { let (#(#names,)* #taken) = #expression; }
        })
    }
}
