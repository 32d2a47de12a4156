//! The guards of the decision code, found in its source.

use std::collections::BTreeMap;
use std::path::Path;

/// Every guard, and every refusal that is made without one.
pub struct Guards {
    /// File and line by name: `module::function`, and `#n` where a function has several.
    pub places: BTreeMap<String, (String, u32)>,
    /// Lines that make a refusal and are no guard.
    pub strays: Vec<String>,
}

impl Guards {
    /// Reads `core/src/decide.rs` and what is under it; what judges frames that are read (`fold`) refuses nothing.
    pub fn read() -> Self {
        let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core");
        let mut files = vec![core.join("src/decide.rs")];
        let rooms = std::fs::read_dir(core.join("src/decide")).expect("it is there");
        files.extend(rooms.map(|file| file.expect("listed").path()));
        let mut guards = Self {
            places: BTreeMap::new(),
            strays: Vec::new(),
        };
        for file in files {
            let stem = file.file_stem().and_then(|s| s.to_str()).expect("a name");
            if file.is_file() && !["fold", "forge"].contains(&stem) {
                let text = std::fs::read_to_string(&file).expect("it reads");
                let name = file.strip_prefix(&core).expect("below the core");
                guards.file(stem, &name.to_string_lossy(), &text);
            }
        }
        guards
    }

    fn file(&mut self, module: &str, name: &str, text: &str) {
        let mut found: Vec<(String, u32)> = Vec::new();
        let (mut function, mut defines) = (String::new(), false);
        for (number, line) in text.lines().enumerate() {
            let code = line.trim_start();
            if code.starts_with("//") {
                continue;
            }
            // The definitions of the two guards themselves.
            defines = match code {
                "impl Ask<'_> {" => true,
                _ => defines && line != "}",
            };
            if let Some((_, after)) = code.split_once("fn ") {
                function = after.split(['(', '<']).next().expect("a part").to_owned();
            }
            if code.contains(".refuse(") || code.contains(".found(") {
                found.push((function.clone(), u32::try_from(number + 1).expect("short")));
            }
            let makes = code.starts_with("Err(")
                || ["return Err(", "=> Err(", "ok_or"]
                    .iter()
                    .any(|way| code.contains(way));
            // A pattern is no refusal.
            if makes && !defines && !(code.starts_with("Err(") && code.contains("=>")) {
                self.strays.push(format!("{name}:{}: {code}", number + 1));
            }
        }
        for (n, (function, line)) in found.iter().enumerate() {
            let mut alike = found.iter().enumerate().filter(|(_, (f, _))| f == function);
            let many = alike.clone().count() > 1;
            let place = 1 + alike.position(|(m, _)| m == n).expect("it is one of them");
            let place = if many {
                format!("#{place}")
            } else {
                String::new()
            };
            let guard = format!("{module}::{function}{place}");
            self.places.insert(guard, (name.to_owned(), *line));
        }
    }
}
