//! Just enough Markdown: fences, headings, links, tables.

/// A page without what stands in code fences; those lines are empty, so that line numbers hold.
pub fn prose(text: &str) -> String {
    let mut fence: Option<&str> = None;
    let mut prose = String::with_capacity(text.len());
    for line in text.lines() {
        let mark = fence_mark(line);
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if mark.starts_with(open) && line.trim() == mark => {
                fence = None
            }
            (None, None) => prose.push_str(line),
            _ => {}
        }
        prose.push('\n');
    }
    prose
}

fn fence_mark(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let ticks = line.len() - line.trim_start_matches('`').len();
    (ticks >= 3).then(|| &line[..ticks])
}

/// Opening fences: line number from 1 and the language that is named.
pub fn fences(text: &str) -> Vec<(usize, String)> {
    let mut open: Option<&str> = None;
    let mut fences = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(mark) = fence_mark(line) else {
            continue;
        };
        match open {
            None => {
                open = Some(mark);
                fences.push((at + 1, line.trim().trim_start_matches('`').to_owned()));
            }
            Some(first) if mark.starts_with(first) && line.trim() == mark => open = None,
            Some(_) => {}
        }
    }
    fences
}

/// A line without its code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// Links of a page, inline and by reference: line number from 1 and target.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (at, line) in prose(text).lines().enumerate() {
        let line = without_code(line);
        for (start, _) in line.match_indices("](") {
            let rest = &line[start + 2..];
            if let Some(end) = rest.find([')', ' ']) {
                links.push((at + 1, rest[..end].to_owned()));
            }
        }
        if line.starts_with('[')
            && let Some((_, target)) = line.split_once("]: ")
        {
            links.push((at + 1, target.trim().to_owned()));
        }
    }
    links
}

/// The anchors that headings give, as code hosts make them.
pub fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for line in prose(text).lines().filter(|line| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let slug: String = title
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                '-' | '_' => Some(c),
                c if c.is_alphanumeric() => Some(c),
                _ => None,
            })
            .collect();
        let same = anchors.iter().filter(|known| **known == slug).count();
        anchors.push(if same == 0 {
            slug
        } else {
            format!("{slug}-{same}")
        });
    }
    anchors
}

/// Cells of a table row; `None` for any other line and for the rule under a head.
pub fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = inner.split(" | ").map(str::trim).collect();
    let is_rule = inner.chars().all(|c| matches!(c, '-' | '|' | ' ' | ':'));
    (!is_rule).then_some(cells)
}

#[test]
fn reads_links_anchors_and_fences_but_not_code() {
    let text = "# A b, c!\n[x](a.md) `[y](b.md)` [z](c.md#d)\n```sh\n[no](d.md)\n# not a heading\n```\n# A b, c!\n[r]: e.md\n````text\n```\n````\n";
    let found = links(text);
    assert_eq!(
        found,
        [(2, "a.md".into()), (2, "c.md#d".into()), (8, "e.md".into())]
    );
    assert_eq!(anchors(text), ["a-b-c", "a-b-c-1"]);
    assert_eq!(fences(text), [(3, "sh".into()), (9, "text".into())]);
    assert_eq!(cells("| a | b |"), Some(vec!["a", "b"]));
    assert_eq!(cells("|---|---|"), None);
}
