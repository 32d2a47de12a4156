//! Authority, work and mail as `model.md` describes them, in as few words as possible: what the rules must agree with.
//! Written from the description, and knows nothing of how the product does it.

use std::collections::BTreeMap;

use crate::rig::play::{Ask, Came, Known, NAMES, Tok};

/// How an envelope stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mail {
    /// Not delivered.
    Pending,
    /// Delivered and not read.
    Delivered,
    /// Read.
    Acknowledged,
    /// Over, unread.
    Cancelled,
}

/// What an envelope is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Work,
    Message { is_reply: bool },
    Review,
    Notice,
}

#[derive(Clone, Copy, Debug)]
struct Envelope {
    to: &'static str,
    generation: u64,
    kind: Kind,
    mail: Mail,
}

/// How a dispatch stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Queued,
    Accepted,
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Dispatch {
    item: &'static str,
    to: &'static str,
    generation: u64,
    giver: Option<&'static str>,
    stage: Stage,
    envelope: u64,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    generation: u64,
    is_active: bool,
    /// The process that holds it: its number, and which of those that had the number.
    holder: (u32, u32),
}

/// A small world of authority.
#[derive(Clone, Default)]
pub struct Reference {
    sessions: BTreeMap<&'static str, Session>,
    dispatches: Vec<Dispatch>,
    envelopes: Vec<Envelope>,
    /// For each process number, which process has it now; nobody when it is even.
    processes: BTreeMap<u32, u32>,
}

impl Known for Reference {
    fn generation(&self, name: &str) -> u64 {
        self.sessions.get(name).map_or(0, |s| s.generation)
    }

    fn dispatches(&self) -> u64 {
        self.dispatches.len() as u64
    }

    fn envelopes(&self) -> u64 {
        self.envelopes.len() as u64
    }
}

impl Reference {
    /// A process begins under this number, or ends.
    pub fn turn_process(&mut self, pid: u32) -> u32 {
        let turn = self.processes.entry(pid).or_default();
        *turn += 1;
        *turn
    }

    /// Whether a process has this number.
    pub fn is_running(&self, pid: u32) -> bool {
        self.processes.get(&pid).is_some_and(|turn| turn % 2 == 1)
    }

    /// Generation and activity of each session there is.
    pub fn standing(&self) -> Vec<(&'static str, u64, bool)> {
        let known = NAMES.iter().filter_map(|name| {
            let session = self.sessions.get(name)?;
            Some((*name, session.generation, session.is_active))
        });
        known.collect()
    }

    /// How each envelope stands, and under which generation.
    pub fn mail(&self) -> Vec<(Mail, u64)> {
        let envelopes = self.envelopes.iter();
        envelopes.map(|e| (e.mail, e.generation)).collect()
    }

    fn is_dead(&self, (pid, turn): (u32, u32)) -> bool {
        self.processes.get(&pid) != Some(&turn)
    }

    fn holder(&self, pid: u32) -> (u32, u32) {
        (pid, self.processes.get(&pid).copied().unwrap_or_default())
    }

    /// The check of every write.
    fn check(&self, tok: Tok) -> Result<(), &'static str> {
        let session = self.sessions.get(tok.name).ok_or("unknown-session")?;
        match tok.generation.cmp(&session.generation) {
            std::cmp::Ordering::Less => Err("stale-generation"),
            std::cmp::Ordering::Greater => Err("never-issued"),
            std::cmp::Ordering::Equal if session.is_active => Ok(()),
            std::cmp::Ordering::Equal => Err("retired"),
        }
    }

    /// What a command must come to; done where it may be.
    pub fn ask(&mut self, ask: Ask) -> Came {
        match ask {
            Ask::Register(name, pid) => self.register(name, pid),
            Ask::Adopt(name, pid, force, tok) => self.adopt(name, pid, force, tok),
            Ask::Retire(tok, if_idle) => self.retire(tok, if_idle),
            Ask::Dispatch(item, to, tok) => self.dispatch(item, to, tok),
            Ask::Accept(tok, number) => self.work(tok, number, Ask::Accept(tok, number)),
            Ask::Decline(tok, number) => self.work(tok, number, Ask::Decline(tok, number)),
            Ask::Report(tok, number) => self.work(tok, number, Ask::Report(tok, number)),
            Ask::Cancel(tok, number, force) => self.cancel(tok, number, force),
            Ask::Send(tok, to, re) => self.send(tok, to, re),
            Ask::Deliver(tok, number) => self.handle(tok, number, Mail::Delivered),
            Ask::Acknowledge(tok, number) => self.handle(tok, number, Mail::Acknowledged),
            Ask::Note(tok) => self.check(tok).map(|()| None),
            Ask::Branch(source, name, pid) => self.branch(source, name, pid),
        }
    }

    fn register(&mut self, name: &'static str, pid: u32) -> Came {
        let before = self.sessions.get(name).copied();
        if before.is_some_and(|session| session.is_active) {
            return Err("already-active");
        }
        let generation = before.map_or(0, |session| session.generation) + 1;
        let session = Session {
            generation,
            is_active: true,
            holder: self.holder(pid),
        };
        self.sessions.insert(name, session);
        let mut reviews = 0;
        for envelope in self.envelopes.iter_mut().filter(|e| e.to == name) {
            if matches!(envelope.mail, Mail::Pending | Mail::Delivered) {
                envelope.mail = Mail::Cancelled;
                let is_reply = matches!(envelope.kind, Kind::Message { is_reply: true });
                reviews += u64::from(is_reply || envelope.kind == Kind::Review);
            }
        }
        for _ in 0..reviews {
            self.put(name, Kind::Review);
        }
        Ok(Some(generation))
    }

    fn put(&mut self, to: &'static str, kind: Kind) -> u64 {
        let generation = self.generation(to);
        self.envelopes.push(Envelope {
            to,
            generation,
            kind,
            mail: Mail::Pending,
        });
        self.envelopes.len() as u64
    }

    fn adopt(&mut self, name: &'static str, pid: u32, force: bool, tok: Option<Tok>) -> Came {
        let session = *self.sessions.get(name).ok_or("unknown-session")?;
        if !session.is_active {
            return Err("retired");
        }
        let is_owner = tok.map(|tok| self.check(tok)).transpose()?.is_some();
        if !(is_owner || force || self.is_dead(session.holder)) {
            return Err("held");
        }
        let generation = session.generation + 1;
        let holder = self.holder(pid);
        if let Some(session) = self.sessions.get_mut(name) {
            (session.generation, session.holder) = (generation, holder);
        }
        for envelope in self.envelopes.iter_mut().filter(|e| e.to == name) {
            if matches!(envelope.mail, Mail::Pending | Mail::Delivered) {
                (envelope.mail, envelope.generation) = (Mail::Pending, generation);
            }
        }
        let live = |d: &&mut Dispatch| d.to == name && d.stage != Stage::Over;
        for dispatch in self.dispatches.iter_mut().filter(live) {
            dispatch.generation = generation;
        }
        Ok(Some(generation))
    }

    fn retire(&mut self, tok: Tok, if_idle: bool) -> Came {
        match self.check(tok) {
            // Until the next register, once more is the same.
            Err("retired") => return Ok(None),
            checked => checked?,
        }
        let name = tok.name;
        let is_open =
            |e: &Envelope| e.to == name && matches!(e.mail, Mail::Pending | Mail::Delivered);
        let has_work = self
            .dispatches
            .iter()
            .any(|d| d.to == name && d.stage != Stage::Over);
        let mut mail = self.envelopes.iter();
        // What was delivered is not pending any more.
        let is_pending = |e: &Envelope| e.to == name && e.mail == Mail::Pending;
        let has_mail = mail.any(|e| is_pending(e) && e.kind != Kind::Notice);
        if if_idle && (has_work || has_mail) {
            return Err("open-obligations");
        }
        for number in 0..self.dispatches.len() {
            if self.dispatches[number].to == name {
                self.end(number, Mail::Cancelled);
            }
        }
        for envelope in &mut self.envelopes {
            if is_open(envelope) && envelope.kind == Kind::Notice {
                envelope.mail = Mail::Cancelled;
            }
        }
        if let Some(session) = self.sessions.get_mut(name) {
            session.is_active = false;
        }
        Ok(None)
    }

    /// Ends a dispatch, and its envelope with it.
    fn end(&mut self, number: usize, mail: Mail) {
        let dispatch = &mut self.dispatches[number];
        if dispatch.stage == Stage::Over {
            return;
        }
        dispatch.stage = Stage::Over;
        let envelope = &mut self.envelopes[dispatch.envelope as usize - 1];
        if matches!(envelope.mail, Mail::Pending | Mail::Delivered) {
            envelope.mail = mail;
        }
    }

    fn dispatch(&mut self, item: &'static str, to: &'static str, tok: Option<Tok>) -> Came {
        tok.map(|tok| self.check(tok)).transpose()?;
        let session = self.sessions.get(to).ok_or("unknown-session")?;
        if !session.is_active {
            return Err("retired");
        }
        let generation = session.generation;
        let mut live = self.dispatches.iter();
        if live.any(|d| d.item == item && d.stage != Stage::Over) {
            return Err("duplicate-item");
        }
        let envelope = self.put(to, Kind::Work);
        self.dispatches.push(Dispatch {
            item,
            to,
            generation,
            giver: tok.map(|tok| tok.name),
            stage: Stage::Queued,
            envelope,
        });
        Ok(Some(self.dispatches.len() as u64))
    }

    /// Accept, decline, report: by the session and generation that it was given to.
    fn work(&mut self, tok: Tok, number: u64, ask: Ask) -> Came {
        self.check(tok)?;
        let at = (number as usize).wrapping_sub(1);
        let dispatch = *self.dispatches.get(at).ok_or("unknown-dispatch")?;
        let is_over = dispatch.stage == Stage::Over;
        if dispatch.to != tok.name || !is_over && dispatch.generation != tok.generation {
            return Err("not-your-envelope");
        }
        match (ask, dispatch.stage) {
            (_, Stage::Over) => return Err("already-terminal"),
            (Ask::Accept(..), _) => self.dispatches[at].stage = Stage::Accepted,
            (Ask::Decline(..), Stage::Accepted) => return Err("not-pending"),
            (Ask::Report(..), Stage::Queued) => return Err("no-binding"),
            // Its session has answered it.
            _ => self.end(at, Mail::Acknowledged),
        }
        Ok(None)
    }

    fn cancel(&mut self, tok: Option<Tok>, number: u64, force: bool) -> Came {
        tok.map(|tok| self.check(tok)).transpose()?;
        let at = (number as usize).wrapping_sub(1);
        let dispatch = *self.dispatches.get(at).ok_or("unknown-dispatch")?;
        if dispatch.stage == Stage::Over {
            return Err("already-terminal");
        }
        let is_giver = tok.map(|tok| tok.name) == dispatch.giver;
        if dispatch.giver.is_some() && !is_giver && !force {
            return Err("not-your-envelope");
        }
        self.end(at, Mail::Cancelled);
        Ok(None)
    }

    fn send(&mut self, tok: Tok, to: &'static str, re: Option<u64>) -> Came {
        self.check(tok)?;
        let session = self.sessions.get(to).ok_or("unknown-session")?;
        if !session.is_active {
            return Err("retired");
        }
        if re.is_some_and(|number| number > self.envelopes()) {
            return Err("unknown-envelope");
        }
        let is_reply = re.is_some();
        Ok(Some(self.put(to, Kind::Message { is_reply })))
    }

    fn handle(&mut self, tok: Tok, number: u64, to: Mail) -> Came {
        self.check(tok)?;
        let at = (number as usize).wrapping_sub(1);
        let envelope = self.envelopes.get_mut(at).ok_or("unknown-envelope")?;
        let is_open = matches!(envelope.mail, Mail::Pending | Mail::Delivered);
        if envelope.to != tok.name || is_open && envelope.generation != tok.generation {
            return Err("not-your-envelope");
        }
        match (envelope.mail, to) {
            (Mail::Cancelled, _) => return Err("not-pending"),
            (Mail::Pending, _) | (Mail::Delivered, Mail::Acknowledged) => envelope.mail = to,
            _ => {}
        }
        Ok(None)
    }

    /// What the source has read stays read, what it has not is copied, and the source is told.
    fn branch(&mut self, source: &'static str, name: &'static str, pid: u32) -> Came {
        let from = *self.sessions.get(source).ok_or("unknown-session")?;
        if source == name {
            return Err("same-name");
        }
        if self.sessions.contains_key(name) {
            return Err("name-taken");
        }
        let unread = |e: &&Envelope| {
            e.to == source && e.mail == Mail::Delivered && matches!(e.kind, Kind::Message { .. })
        };
        let unread: Vec<Kind> = self
            .envelopes
            .iter()
            .filter(unread)
            .map(|e| e.kind)
            .collect();
        let session = Session {
            generation: 1,
            is_active: true,
            holder: self.holder(pid),
        };
        self.sessions.insert(name, session);
        if from.is_active {
            self.put(source, Kind::Notice);
        }
        for kind in unread {
            self.put(name, kind);
        }
        Ok(Some(1))
    }
}
