//! Rust files as token trees: enough to see functions, attributes and words, without a full parser.
//!
//! Tokens inside macro calls are seen too, so nothing hides in a `proptest!` block.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A function with what the rules ask of it.
#[derive(Debug)]
pub struct Function {
    pub name: String,
    /// Line of the word `fn`, from 1.
    pub line: usize,
    /// From the word `fn` to the closing brace, both counted.
    pub lines: usize,
    pub test: bool,
    /// Its doc comment, as written.
    pub docs: String,
}

/// A word at a line.
#[derive(Debug)]
pub struct Word {
    pub line: usize,
    pub text: String,
}

/// What the rules ask of one Rust file.
#[derive(Debug, Default)]
pub struct Source {
    pub functions: Vec<Function>,
    /// Names given by `mod`.
    pub modules: Vec<Word>,
    /// Names given by `fn`, `struct`, `enum`, `trait`, `type`, `const`, `static` and `mod`.
    pub named: Vec<Word>,
    /// Lines with the word `unsafe`.
    pub unsafe_lines: Vec<usize>,
    /// `todo!`, `unimplemented!` and `#[ignore]` without a reason.
    pub stubs: Vec<Word>,
    /// Inner attributes (`#![...]`) without their spaces.
    pub inner_attributes: Vec<String>,
    /// Why the file could not be read as Rust.
    pub broken: Option<String>,
}

#[derive(Default)]
struct Pending {
    test: bool,
    docs: String,
}

impl Source {
    /// Reads one file; what is no Rust is remembered in `broken`.
    pub fn read(path: &str, text: &str) -> Source {
        let mut source = Source::default();
        match text.parse::<TokenStream>() {
            Ok(tokens) => source.walk(tokens),
            Err(error) => source.broken = Some(format!("{path}: {error}")),
        }
        source
    }

    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut pending = Pending::default();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    at += self.attribute(&tokens[at + 1..], &mut pending);
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => pending = Pending::default(),
                TokenTree::Group(group) => {
                    if group.delimiter() == Delimiter::Brace {
                        pending = Pending::default();
                    }
                    self.walk(group.stream());
                }
                TokenTree::Ident(_) => self.word(&tokens[at..], &mut pending),
                _ => {}
            }
            at += 1;
        }
    }

    /// Takes an attribute behind `#`; says how many tokens it was.
    fn attribute(&mut self, after: &[TokenTree], pending: &mut Pending) -> usize {
        let (inner, group, taken) = match after {
            [TokenTree::Group(group), ..] => (false, group, 1),
            [TokenTree::Punct(bang), TokenTree::Group(group), ..] if bang.as_char() == '!' => {
                (true, group, 2)
            }
            _ => return 0,
        };
        if group.delimiter() != Delimiter::Bracket {
            return 0;
        }
        let text: String = group
            .stream()
            .into_iter()
            .map(|token| token.to_string())
            .collect();
        if inner {
            self.inner_attributes.push(text);
            return taken;
        }
        if text == "ignore" {
            self.stubs.push(Word {
                line: line_of(group),
                text: "#[ignore] without a reason".into(),
            });
        }
        if let Some(doc) = text.strip_prefix("doc=") {
            pending.docs.push_str(doc);
            pending.docs.push('\n');
        }
        pending.test |= text == "test" || text.ends_with("::test");
        self.unsafe_words(group.stream());
        taken
    }

    fn unsafe_words(&mut self, tokens: TokenStream) {
        for token in tokens {
            if let TokenTree::Ident(ident) = token
                && ident == "unsafe"
            {
                self.unsafe_lines.push(ident.span().start().line);
            }
        }
    }

    fn word(&mut self, tokens: &[TokenTree], pending: &mut Pending) {
        let TokenTree::Ident(ident) = &tokens[0] else {
            return;
        };
        let line = ident.span().start().line;
        let word = ident.to_string();
        match word.as_str() {
            "unsafe" => self.unsafe_lines.push(line),
            "todo" | "unimplemented" => {
                if matches!(tokens.get(1), Some(TokenTree::Punct(bang)) if bang.as_char() == '!') {
                    self.stubs.push(Word {
                        line,
                        text: format!("{word}!"),
                    });
                }
            }
            "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "mod" => {
                let Some(TokenTree::Ident(name)) = tokens.get(1) else {
                    return;
                };
                let name = Word {
                    line,
                    text: name.to_string(),
                };
                match word.as_str() {
                    "fn" => self.function(tokens, &name, std::mem::take(pending)),
                    "mod" => self.modules.push(Word {
                        line,
                        text: name.text.clone(),
                    }),
                    // `const fn`: the word behind names the item.
                    "const" if name.text == "fn" => return,
                    _ => {}
                }
                self.named.push(name);
            }
            _ => {}
        }
    }

    fn function(&mut self, tokens: &[TokenTree], name: &Word, pending: Pending) {
        let end = tokens.iter().find_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                Some(group.span_close().end().line)
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => Some(punct.span().end().line),
            _ => None,
        });
        self.functions.push(Function {
            name: name.text.clone(),
            line: name.line,
            lines: end.unwrap_or(name.line) - name.line + 1,
            test: pending.test,
            docs: pending.docs,
        });
    }
}

fn line_of(group: &Group) -> usize {
    group.span_open().start().line
}

#[test]
fn sees_functions_tests_and_their_docs() {
    let source = Source::read(
        "a.rs",
        "#![no_std]\n/// REG-4 holds.\n#[test]\nfn one() {\n    two();\n}\nconst fn two() -> [u8; 2] { [0; 2] }\nproptest! { #[test]\n fn three(x in 0..1) {} }",
    );
    let seen: Vec<_> = source
        .functions
        .iter()
        .map(|f| (f.name.as_str(), f.lines, f.test))
        .collect();
    assert_eq!(
        seen,
        [("one", 3, true), ("two", 1, false), ("three", 1, true)]
    );
    assert!(source.functions[0].docs.contains("REG-4") && source.functions[1].docs.is_empty());
    assert_eq!(source.inner_attributes, ["no_std"]);
}

#[test]
fn every_rust_file_can_be_read() {
    let broken = crate::tree::Tree::repository()
        .sources()
        .filter_map(|(_, source)| source.broken.clone())
        .collect();
    crate::assert_none("files that are no Rust", broken);
    assert!(Source::read("a.rs", "fn a( {").broken.is_some());
}
