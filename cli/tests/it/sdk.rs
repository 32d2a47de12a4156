//! The official kits of the protocols that are spoken here, in a Python of their own below the build directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// What is installed.
const KITS: &[&str] = &["agent-client-protocol==0.12.1", "mcp==2.3.0"];

/// A Python that has them, made once; `None`, with the reason on standard error, where it cannot be made.
pub fn python() -> Option<&'static Path> {
    static MADE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match MADE.get_or_init(make) {
        Ok(python) => Some(python),
        Err(why) => {
            eprintln!("SKIPPED what is driven by official kits: {why}");
            None
        }
    }
}

fn make() -> Result<PathBuf, String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kits");
    let (python, whole) = (dir.join("bin/python"), dir.join("whole"));
    let wanted = KITS.join("\n");
    if std::fs::read_to_string(&whole).is_ok_and(|has| has == wanted) {
        return Ok(python);
    }
    let at = dir.to_str().ok_or("the build directory is not UTF-8")?;
    run(Path::new("python3"), &["-m", "venv", "--clear", at])?;
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    run(&python, &[&install, KITS].concat())?;
    std::fs::write(&whole, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

fn run(program: &Path, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("it said nothing");
    Err(format!("{} {args:?}: {last}", program.display()))
}
