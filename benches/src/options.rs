//! The options of the programs: pairs of a name and a value.

/// Gives each pair to `take`, in order.
///
/// # Errors
/// When a name has no value, and whatever `take` returns.
pub fn each(
    mut arguments: impl Iterator<Item = String>,
    mut take: impl FnMut(&str, String) -> Result<(), String>,
) -> Result<(), String> {
    while let Some(name) = arguments.next() {
        let value = arguments.next();
        let value = value.ok_or_else(|| format!("{name} needs a value, or is unknown"))?;
        take(&name, value)?;
    }
    Ok(())
}

/// The value of an option as a number.
///
/// # Errors
/// When it is none.
pub fn number(name: &str, value: &str) -> Result<usize, String> {
    let number = value.parse::<usize>();
    number.map_err(|error| format!("{name} {value}: {error}"))
}
