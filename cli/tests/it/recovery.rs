//! The walk through the verdicts in `docs/recovery.md` is real: its commands are run, and what they print is what the
//! page shows. `UPDATE_EXPECT=1` writes the page anew.

use std::path::Path;

use crate::console::{plain, run, steps};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/recovery.md");

/// What the disk, a killed writer and other programs do.
const PRELUDE: &str = concat!(
    "golden=",
    env!("CARGO_MANIFEST_DIR"),
    "/../projection/tests/golden/forged/guard.generation-stale.seg",
    r#"
number() { printf '%s\n' "$1" | grep -o "\"$2\":[0-9]*" | cut -d: -f2; }
frames() { tenure --json inspect store | grep '"what":"frame"'; }
file() { ls store/segments/*.seg | head -n 1; }
hurt() {
  frame=$(frames | grep "\"position\":$1[,}]")
  at=$(( $(number "$frame" offset) + 100 ))
  byte=$(dd if="$(file)" bs=1 skip=$at count=1 status=none | od -An -tu1 | tr -d ' ')
  printf "\\$(printf %03o $((byte ^ 1)))" | dd of="$(file)" bs=1 seek=$at conv=notrunc status=none
}
tear() {
  frame=$(frames | tail -n 1)
  at=$(( $(number "$frame" offset) + $(number "$frame" bytes) ))
  printf 'TNF1 half of a frame' | dd of="$(file)" bs=1 seek=$at conv=notrunc status=none
}
newer() {
  newest=$(ls $1/segments/*.seg | tail -n 1)
  printf '\002' | dd of="$newest" bs=1 seek=8 conv=notrunc status=none
  # What gzip ends with begins with the CRC-32 of the content.
  head -c 4092 "$newest" | gzip -c | tail -c 8 | head -c 4 | dd of="$newest" bs=1 seek=4092 conv=notrunc status=none
}
unreadable() {
  newest=$(ls $1/segments/*.seg | tail -n 1)
  rm "$newest" && mkdir "$newest"
}
late() { printf 'TNF1 late' >> "$(ls $1/segments/*.seg | head -n 1)"; }
forged() {
  umask 077
  mkdir -p forged/segments && cp "$golden" forged/segments/00000000000000000001-1.seg
}
"#
);

/// The line with every long number replaced too: offsets, lengths, checksums, incarnations.
fn plainer(line: &str, room: &Path) -> String {
    let (mut out, mut digits) = (String::new(), String::new());
    let hex = line.split("0x").enumerate().map(|(n, part)| {
        let rest = part.trim_start_matches(|c: char| n > 0 && c.is_ascii_hexdigit());
        if n == 0 {
            part.to_owned()
        } else {
            format!("HEX{rest}")
        }
    });
    let line = plain(&hex.collect::<String>(), room);
    for c in line.chars().chain(['\n']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        out.push_str(if digits.len() > 2 { "N" } else { &digits });
        digits.clear();
        out.push(c);
    }
    // Columns follow the length of what stands in them.
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The page with what the commands printed.
fn written(page: &str, printed: &[Vec<String>], room: &Path) -> String {
    let (mut out, mut inside, mut step) = (Vec::new(), false, 0);
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        }
        if line.starts_with("$ ") && inside {
            out.push(line.to_owned());
            let shown = printed[step].iter().filter(|line| !line.is_empty());
            let room = room.display().to_string();
            out.extend(shown.map(|line| line.replace(&room, "/you/project").trim_end().to_owned()));
            step += 1;
        } else if !inside || line.starts_with("```") {
            out.push(line.to_owned());
        }
    }
    out.join("\n") + "\n"
}

/// F11, F29, F31: each verdict tells what happened, what is lost and what to do, as the page says.
#[test]
fn the_recovery_page_shows_what_its_commands_print() {
    let room = tempfile::tempdir().expect("a directory");
    let room = room.path().canonicalize().expect("it is there");
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    let steps = steps(&page);
    assert!(steps.len() > 15, "the page has commands");
    let printed = run(&steps, &room, PRELUDE);
    assert_eq!(
        printed.len(),
        steps.len() + 1,
        "every command came to its end"
    );
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(PAGE, written(&page, &printed, &room)).expect("it can be written");
        return;
    }
    for (step, printed) in steps.iter().zip(&printed) {
        let clean = |lines: &[String]| -> Vec<String> {
            let plain = lines.iter().map(|line| plainer(line, &room));
            plain.filter(|line| !line.is_empty()).collect()
        };
        assert_eq!(clean(&step.shown), clean(printed), "$ {}", step.command);
    }
}
