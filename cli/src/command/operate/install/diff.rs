//! What changed between two texts, line by line.

/// Unchanged lines shown around a change.
const AROUND: usize = 2;
/// Lines compared with each other at most, as a product: beyond it everything in between is said to have changed.
const PAIRS_MAX: usize = 4 << 20;

/// Lines that begin with `-` are gone, with `+` new, with a blank unchanged; `...` stands for those not shown.
pub fn lines(before: &str, after: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let script = script(&old, &new);
    let changed: Vec<usize> = (0..script.len()).filter(|n| script[*n].0 != ' ').collect();
    let near = |n: usize| changed.iter().any(|c| c.abs_diff(n) <= AROUND);
    let mut shown: Vec<String> = Vec::new();
    for (n, (mark, line)) in script.iter().enumerate() {
        if near(n) {
            shown.push(format!("{mark} {line}"));
        } else if shown.last().is_some_and(|last| last != "...") {
            shown.push("...".to_owned());
        }
    }
    if shown.last().is_some_and(|last| last == "...") {
        shown.pop();
    }
    shown
}

fn script<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(char, &'t str)> {
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(new).take_while(same).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(same)
        .count();
    let (a, b) = (
        &old_rest[..old_rest.len() - tail],
        &new_rest[..new_rest.len() - tail],
    );
    let mut all: Vec<(char, &str)> = old[..head].iter().map(|line| (' ', *line)).collect();
    all.extend(between(a, b));
    all.extend(
        old_rest[old_rest.len() - tail..]
            .iter()
            .map(|line| (' ', *line)),
    );
    all
}

/// By the longest lines that both have in order.
fn between<'t>(a: &[&'t str], b: &[&'t str]) -> Vec<(char, &'t str)> {
    let mut all = Vec::new();
    let (mut i, mut j) = (0, 0);
    if a.len() * b.len() <= PAIRS_MAX {
        let width = b.len() + 1;
        let mut longest = vec![0u32; (a.len() + 1) * width];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                longest[i * width + j] = match a[i] == b[j] {
                    true => longest[(i + 1) * width + j + 1] + 1,
                    false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
                };
            }
        }
        while i < a.len() && j < b.len() {
            if a[i] == b[j] {
                all.push((' ', a[i]));
                (i, j) = (i + 1, j + 1);
            } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
                all.push(('-', a[i]));
                i += 1;
            } else {
                all.push(('+', b[j]));
                j += 1;
            }
        }
    }
    all.extend(a[i..].iter().map(|line| ('-', *line)));
    all.extend(b[j..].iter().map(|line| ('+', *line)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applied_to_the_old_text_it_gives_the_new_one() {
        let texts = [
            "",
            "a\n",
            "a\nb\nc\n",
            "x\na\nb\ny\nc\n",
            "c\nb\na\n",
            "a\na\na\n",
            "b\n",
        ];
        for old in texts {
            for new in texts {
                let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
                let all = script(&a, &b);
                let side = |gone: char| -> Vec<&str> {
                    let kept = all.iter().filter(|(mark, _)| *mark != gone);
                    kept.map(|(_, line)| *line).collect()
                };
                assert_eq!((side('+'), side('-')), (a, b));
            }
        }
        assert_eq!(
            lines("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nx\n6\n"),
            ["  3", "  4", "- 5", "+ x", "  6"]
        );
        assert!(lines("a\n", "a\n").is_empty());
    }
}
