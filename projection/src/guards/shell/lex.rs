//! A shell line in its commands and words, as far as they stand in the text.

/// A word of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Word {
    /// Without quotes and escapes; expansions as they are written.
    pub(super) text: String,
    /// Whether it stands there as the command gets it: nothing is expanded in it.
    pub(super) plain: bool,
}

/// A piece of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Piece {
    /// A subshell begins.
    Open,
    /// It ends.
    Close,
    /// A command in its words.
    Command(Vec<Word>),
    /// What stands in `$( )` or backquotes.
    Inside(String),
}

struct Lexer<'l> {
    rest: std::iter::Peekable<std::str::Chars<'l>>,
    pieces: Vec<Piece>,
    words: Vec<Word>,
    word: Option<Word>,
    /// The next word is where a redirection leads.
    redirected: bool,
    /// Ends of here-documents whose text begins behind the next line break.
    documents: Vec<String>,
    document_next: bool,
}

/// The pieces of a line, in the order in which they begin; what is inside others stands before them.
pub(super) fn pieces(line: &str) -> Vec<Piece> {
    let mut lexer = Lexer {
        rest: line.chars().peekable(),
        pieces: Vec::new(),
        words: Vec::new(),
        word: None,
        redirected: false,
        documents: Vec::new(),
        document_next: false,
    };
    lexer.run();
    lexer.pieces
}

impl Lexer<'_> {
    fn run(&mut self) {
        while let Some(c) = self.rest.next() {
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' => {
                    self.end_command();
                    self.skip_documents();
                }
                ';' | '&' | '|' => self.separator(c),
                '(' if self.word.is_none() => {
                    self.end_command();
                    self.pieces.push(Piece::Open);
                }
                ')' => {
                    self.end_command();
                    self.pieces.push(Piece::Close);
                }
                '{' | '}' if self.word.is_none() && self.stands_alone() => self.end_command(),
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '<' | '>' => self.redirection(c),
                '\'' => self.quoted(),
                '"' => self.double_quoted(),
                '`' => self.backquoted(),
                '$' => self.dollar(),
                '\\' => {
                    if let Some(next) = self.rest.next().filter(|c| *c != '\n') {
                        self.push(next);
                    }
                }
                '*' | '?' | '[' => {
                    self.push(c);
                    self.unknown();
                }
                other => self.push(other),
            }
        }
        self.end_command();
    }

    fn stands_alone(&mut self) -> bool {
        self.rest
            .peek()
            .is_none_or(|c| c.is_whitespace() || *c == ';')
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_with(|| Word {
            text: String::new(),
            plain: true,
        })
    }

    fn push(&mut self, c: char) {
        self.word().text.push(c);
    }

    fn unknown(&mut self) {
        self.word().plain = false;
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.document_next) {
            self.documents.push(word.text);
        } else if !std::mem::take(&mut self.redirected) {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.redirected = false;
        if !self.words.is_empty() {
            self.pieces
                .push(Piece::Command(std::mem::take(&mut self.words)));
        }
    }

    fn separator(&mut self, c: char) {
        if c == '&' && self.rest.peek() == Some(&'>') {
            // `&>file`
            return;
        }
        // `find -exec ... \;` came as an escaped word; this one separates.
        self.end_command();
        while self
            .rest
            .next_if(|next| matches!(next, ';' | '&' | '|'))
            .is_some()
        {}
    }

    fn redirection(&mut self, c: char) {
        // A number that touches it is a descriptor.
        if self
            .word
            .as_ref()
            .is_some_and(|w| w.text.chars().all(|c| c.is_ascii_digit()))
        {
            self.word = None;
        }
        self.end_word();
        if c == '<' && self.rest.next_if_eq(&'(').is_some()
            || c == '>' && self.rest.next_if_eq(&'(').is_some()
        {
            let inner = self.until_paren();
            self.pieces.push(Piece::Inside(inner));
            return;
        }
        if c == '<' && self.rest.next_if_eq(&'<').is_some() {
            if self.rest.next_if_eq(&'<').is_none() {
                self.rest.next_if_eq(&'-');
                self.document_next = true;
                return;
            }
            self.redirected = true;
            return;
        }
        while self
            .rest
            .next_if(|next| matches!(next, '>' | '|' | '&'))
            .is_some()
        {}
        self.redirected = true;
    }

    fn skip_documents(&mut self) {
        for end in std::mem::take(&mut self.documents) {
            loop {
                let mut line = String::new();
                let mut more = false;
                for c in self.rest.by_ref() {
                    if c == '\n' {
                        more = true;
                        break;
                    }
                    line.push(c);
                }
                if line.trim_start_matches('\t') == end || !more {
                    break;
                }
            }
        }
    }

    fn quoted(&mut self) {
        self.word();
        while let Some(c) = self.rest.next_if(|c| *c != '\'') {
            self.push(c);
        }
        self.rest.next();
    }

    fn double_quoted(&mut self) {
        self.word();
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return,
                '\\' => match self.rest.next() {
                    Some(next @ ('"' | '\\' | '$' | '`')) => self.push(next),
                    Some('\n') | None => {}
                    Some(other) => {
                        self.push('\\');
                        self.push(other);
                    }
                },
                '`' => self.backquoted(),
                '$' => self.dollar(),
                other => self.push(other),
            }
        }
    }

    fn backquoted(&mut self) {
        let mut inner = String::new();
        while let Some(c) = self.rest.next() {
            match c {
                '`' => break,
                '\\' => inner.extend(self.rest.next()),
                other => inner.push(other),
            }
        }
        self.unknown();
        self.pieces.push(Piece::Inside(inner));
    }

    fn dollar(&mut self) {
        match self.rest.peek() {
            Some('(') => {
                self.rest.next();
                let inner = self.until_paren();
                self.unknown();
                self.pieces.push(Piece::Inside(inner));
            }
            Some('\'') => {
                self.rest.next();
                self.quoted();
            }
            Some(c)
                if c.is_ascii_alphanumeric()
                    || matches!(c, '_' | '{' | '@' | '*' | '#' | '?' | '!' | '$' | '-') =>
            {
                self.push('$');
                self.unknown();
            }
            _ => self.push('$'),
        }
    }

    /// What stands before the parenthesis that closes one already read; quotes hide parentheses.
    fn until_paren(&mut self) -> String {
        let (mut inner, mut depth, mut quote) = (String::new(), 1, None);
        while let Some(c) = self.rest.next() {
            match (quote, c) {
                (Some('\''), '\'') => quote = None,
                (Some('"'), '"') => quote = None,
                (None, '\'' | '"') => quote = Some(c),
                (Some('\''), _) => {}
                (_, '\\') => {
                    inner.push(c);
                    inner.extend(self.rest.next());
                    continue;
                }
                (None, '(') => depth += 1,
                (None, ')') => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                _ => {}
            }
            inner.push(c);
        }
        inner
    }
}
