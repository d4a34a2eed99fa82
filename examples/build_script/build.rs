//! Compiles the specs into `OUT_DIR`.

fn main() -> Result<(), kgen::BuildError> {
    kgen::Build::new().spec("specs/product.ir").target("portable").compile()?;
    Ok(())
}
