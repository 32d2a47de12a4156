//! Many threads, one transaction: commands that wait are decided together, written with one system call and
//! share a sync.
//!
//! Whoever finds nobody leading leads: it takes every waiting job, decides them in order under the append
//! lock, and hands leadership to the first job that came meanwhile. The hand-over is a state word under the
//! job's own lock (waiting, lead, done), because a lone notify to a thread that has not begun to wait is lost.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex, RwLockWriteGuard};
use tenure_core::command::{Command, Request};
use tenure_core::decide::{Decision, decide, refused};
use tenure_core::event::Entry;
use tenure_core::id::{Moment, Position};
use tenure_core::refusal::Refusal;
use tenure_log::frame::Draft;
use tenure_log::journal::{Appended, Deadline, Tail, TransactError};
use tenure_log::position::Head;

use crate::entry;
use crate::error::{Error, Failure, Trace};

use super::answer::{Answer, Done, answer, standing};
use super::keys::Prior;
use super::live::Live;
use super::prepare::Prepared;
use super::{Store, refuse};

/// Jobs that wait for a leader.
#[derive(Default)]
pub(super) struct Group {
    waiting: Vec<Arc<Job>>,
    led: bool,
}

/// One command on its way.
pub(super) struct Job {
    prepared: Mutex<Prepared>,
    turn: Mutex<Turn>,
    changed: Condvar,
}

enum Turn {
    Waiting,
    Lead,
    Done(Box<Verdict>),
    Taken,
}

/// What became of a job under the lock; durability is still to come.
pub(super) enum Verdict {
    /// Appended, or done before: the answer, where it stands, and the position that it depends on. The
    /// receipt of what was done before is looked up when it is answered.
    Done {
        receipt: Option<Head>,
        at: Moment,
        answer: Answer,
        repeated: bool,
        judged: Position,
    },
    /// Refused; the judgement depends on everything up to that position.
    Refused {
        refusal: Box<Refusal>,
        judged: Position,
    },
    /// The key was used before: the first answer, or a refusal, is found when it is answered.
    Again { prior: Prior, judged: Position },
    /// It may be in the log.
    Unknown { trace: Trace, cause: Error },
    /// Nothing happened.
    Failed(Error),
}

/// A call on its way; dropping it does not take it back.
#[must_use = "a call that nobody waits for may have been refused"]
pub struct Ticket {
    store: Store,
    job: Arc<Job>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ticket(on {:?})", self.store)
    }
}

impl Ticket {
    /// Waits for the answer, leading the group where nobody does.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn wait(self) -> Result<Done, Failure> {
        let verdict = self.verdict();
        refuse::settle(&self.store, &self.job.prepared.lock(), verdict)
    }

    fn verdict(&self) -> Verdict {
        loop {
            let mut turn = self.job.turn.lock();
            while matches!(*turn, Turn::Waiting) {
                self.job.changed.wait(&mut turn);
            }
            match std::mem::replace(&mut *turn, Turn::Taken) {
                Turn::Done(verdict) => return *verdict,
                Turn::Lead => {
                    *turn = Turn::Waiting;
                    drop(turn);
                    lead(&self.store);
                }
                Turn::Waiting | Turn::Taken => unreachable!("a ticket is waited for once"),
            }
        }
    }
}

/// Queues a prepared call.
pub(super) fn submit(store: &Store, prepared: Prepared) -> Ticket {
    let job = Arc::new(Job {
        prepared: Mutex::new(prepared),
        turn: Mutex::new(Turn::Waiting),
        changed: Condvar::new(),
    });
    let mut group = store.0.group.lock();
    group.waiting.push(Arc::clone(&job));
    if !group.led {
        group.led = true;
        *job.turn.lock() = Turn::Lead;
    }
    drop(group);
    Ticket {
        store: store.clone(),
        job,
    }
}

/// Most jobs decided in one transaction: bounds how long the append lock is held.
const JOBS_MAX: usize = 256;

/// Decides everything that waits, then hands leadership on.
fn lead(store: &Store) {
    let jobs: Vec<Arc<Job>> = {
        let mut group = store.0.group.lock();
        let count = group.waiting.len().min(JOBS_MAX);
        group.waiting.drain(..count).collect()
    };
    let verdicts = transact(store, &jobs);
    for (job, verdict) in jobs.iter().zip(verdicts) {
        *job.turn.lock() = Turn::Done(Box::new(verdict));
        job.changed.notify_one();
    }
    let mut group = store.0.group.lock();
    match group.waiting.first() {
        Some(next) => {
            *next.turn.lock() = Turn::Lead;
            next.changed.notify_one();
        }
        None => group.led = false,
    }
}

/// How a job stands while a transaction is being made.
enum Judged {
    /// Draft number so-and-so.
    Drafted { draft: usize, answer: Answer },
    /// Decided without a draft.
    Final(Verdict),
}

/// Decides jobs in order under the append lock until each has a verdict.
fn transact(store: &Store, jobs: &[Arc<Job>]) -> Vec<Verdict> {
    let mut verdicts: Vec<Option<Verdict>> = jobs.iter().map(|_| None).collect();
    loop {
        let open: Vec<usize> = (0..jobs.len()).filter(|n| verdicts[*n].is_none()).collect();
        if open.is_empty() {
            break;
        }
        attempt(store, jobs, &open, &mut verdicts);
    }
    verdicts
        .into_iter()
        .map(|v| v.expect("the loop ends when every job has one"))
        .collect()
}

/// One transaction over the jobs that are open. What a decision needs beyond the tail is read before: inside
/// the transaction nothing but the tail is looked at.
fn attempt(store: &Store, jobs: &[Arc<Job>], open: &[usize], verdicts: &mut [Option<Verdict>]) {
    let keyed = open.iter().any(|n| jobs[*n].prepared.lock().key.is_some());
    let known = match store.ready(keyed) {
        Ok(head) => head,
        Err(error) => return fail(open, verdicts, &error),
    };
    let deadline = deadline(jobs, open);
    let mut live: Option<RwLockWriteGuard<'_, Live>> = None;
    let mut judged: Vec<Judged> = Vec::new();
    let journal = store.journal();
    let result = journal.transact(known, deadline, &mut |tail| {
        let live = live.insert(store.live.write());
        judged.clear();
        match judge(live, &tail, jobs, open) {
            Ok((verdicts, drafts)) => {
                judged = verdicts;
                drafts
            }
            Err(error) => {
                live.tainted = true;
                let failed = |_| Judged::Final(Verdict::Failed(error.clone()));
                judged = open.iter().map(failed).collect();
                Vec::new()
            }
        }
    });
    conclude(store, jobs, open, verdicts, (judged, live), result);
}

fn fail(open: &[usize], verdicts: &mut [Option<Verdict>], error: &Error) {
    for n in open {
        verdicts[*n] = Some(Verdict::Failed(error.clone()));
    }
}

/// The latest deadline among the jobs: who can wait longer carries who cannot.
fn deadline(jobs: &[Arc<Job>], open: &[usize]) -> Deadline {
    let now = std::time::Instant::now();
    let left = open
        .iter()
        .map(|n| jobs[*n].prepared.lock().deadline.remaining(now));
    match left.reduce(|a, b| Some(a?.max(b?))).flatten() {
        Some(left) => Deadline::at(now + left),
        None => Deadline::NEVER,
    }
}

/// Decides the open jobs on the true head, applying each as it is decided.
fn judge(
    live: &mut Live,
    tail: &Tail<'_>,
    jobs: &[Arc<Job>],
    open: &[usize],
) -> Result<(Vec<Judged>, Vec<Draft>), Error> {
    // Between the head this handle knew and the lock, another thread of this process may have read on.
    let read = live.head.position;
    for frame in tail.frames.iter().filter(|f| f.header.position > read) {
        live.fold(&frame.by_ref())?;
    }
    let judged_head = tail.head;
    let (mut judged, mut drafts) = (Vec::new(), Vec::new());
    for n in open {
        let mut prepared = jobs[*n].prepared.lock();
        let at = Moment {
            position: Position(judged_head.position.0 + drafts.len() as u64 + 1),
            time: prepared.request.time,
        };
        judged.push(one(live, &mut prepared, at, &mut drafts)?);
    }
    Ok((judged, drafts))
}

/// Decides one job.
fn one(
    live: &mut Live,
    prepared: &mut Prepared,
    at: Moment,
    drafts: &mut Vec<Draft>,
) -> Result<Judged, Error> {
    if let Some(kind) = live.state.unknown {
        return Ok(Judged::Final(Verdict::Failed(Error::NewerEvents { kind })));
    }
    if let Some(found) = findings(live, &prepared.request) {
        return Ok(Judged::Final(Verdict::Failed(found)));
    }
    let request = &mut prepared.request;
    if let Some(key) = request.input.key
        && let Some(prior) = live.known_prior(key.digest)
    {
        return Ok(Judged::Final(Verdict::Again {
            prior,
            judged: live.state.at.position,
        }));
    }
    match decide(&live.state, request) {
        Ok(decision) if decision.events.is_empty() => {
            let (at, answer) = standing(&live.state, request);
            let judged = live.state.at.position;
            Ok(Judged::Final(Verdict::Done {
                receipt: None,
                at,
                answer,
                repeated: true,
                judged,
            }))
        }
        Ok(decision) => {
            let draft = drafts.len();
            append(live, request, &decision, at, drafts)?;
            let prior = |key: tenure_core::command::Key| (key.digest, key.payload);
            if let Some((key, payload)) = request.input.key.map(prior) {
                live.note_key(
                    key,
                    Prior {
                        position: at.position,
                        payload,
                    },
                );
            }
            Ok(Judged::Drafted {
                draft,
                answer: answer(&live.state, &decision.events),
            })
        }
        Err(refusal) => {
            // A refusal binds no key.
            request.input.key = None;
            if let Some(decision) = refused(&live.state, request, &refusal) {
                append(live, request, &decision, at, drafts)?;
            }
            let judged = live.state.at.position;
            Ok(Judged::Final(Verdict::Refused {
                refusal: Box::new(refusal),
                judged,
            }))
        }
    }
}

/// Frames that did not stand stop every append but the one that acknowledges them.
fn findings(live: &Live, request: &Request) -> Option<Error> {
    let first = *live.state.findings.first()?;
    let settles = matches!(request.input.command, Command::AcceptFinding(_));
    (!settles).then_some(Error::Findings {
        first,
        count: live.state.findings.len(),
    })
}

fn append(
    live: &mut Live,
    request: &Request,
    decision: &Decision,
    at: Moment,
    drafts: &mut Vec<Draft>,
) -> Result<(), Error> {
    drafts.push(entry::draft(request, decision)?);
    let entry = Entry {
        at,
        incarnation: live.state.incarnation,
        fence: decision.fence,
        texts: request.texts.clone(),
        events: decision.events.clone(),
        unknown: None,
    };
    // The chain is known when the log has written the frame; `conclude` sets it.
    let head = Head {
        position: tenure_log::position::Position(at.position.0),
        ..live.head
    };
    live.apply(&entry, head);
    Ok(())
}

/// What the log says of a transaction.
enum Fate {
    /// Every draft is in the log.
    Written(Vec<Head>),
    /// These are, and the others are not: to be decided again.
    Moved(Vec<Head>),
    /// They may be; the last one would stand there.
    Unknown(Head, Error),
    /// None is.
    Failed(Error),
}

/// Turns what the log says into verdicts, and keeps or gives up the state that ran ahead.
fn conclude(
    store: &Store,
    jobs: &[Arc<Job>],
    open: &[usize],
    verdicts: &mut [Option<Verdict>],
    (judged, mut live): (Vec<Judged>, Option<RwLockWriteGuard<'_, Live>>),
    result: Result<Appended, TransactError>,
) {
    if let Some(live) = &mut live {
        match &result {
            Ok(appended) => live.head = appended.head,
            Err(_) => live.tainted = true,
        }
    }
    let fate = match result {
        Ok(appended) => Fate::Written(appended.heads),
        Err(TransactError::Moved { appended }) => Fate::Moved(appended),
        Err(TransactError::Unknown {
            position,
            chain,
            source,
        }) => Fate::Unknown(Head { position, chain }, source.into()),
        Err(TransactError::Failed(source)) => Fate::Failed(source.into()),
        Err(other) => Fate::Failed(Error::Described(other.to_string())),
    };
    if judged.is_empty() {
        // The append lock was never ours, so nothing was decided.
        if let Fate::Failed(cause) | Fate::Unknown(_, cause) = &fate {
            fail(open, verdicts, cause);
        }
        return;
    }
    for (n, judged) in open.iter().zip(judged) {
        verdicts[*n] = verdict(store, &jobs[*n].prepared.lock(), judged, &fate);
    }
}

/// The verdict on one job; `None`: to be decided again.
fn verdict(store: &Store, prepared: &Prepared, judged: Judged, fate: &Fate) -> Option<Verdict> {
    match (judged, fate) {
        (Judged::Drafted { draft, answer }, Fate::Written(heads) | Fate::Moved(heads)) => {
            let head = *heads.get(draft)?;
            let at = Moment {
                position: Position(head.position.0),
                time: prepared.request.time,
            };
            Some(Verdict::Done {
                receipt: Some(head),
                at,
                answer,
                repeated: false,
                judged: at.position,
            })
        }
        (Judged::Drafted { .. }, Fate::Unknown(head, cause)) => {
            let trace = match &prepared.key {
                Some(key) => Trace::Key(key.clone()),
                None => Trace::Receipt(store.proof(*head)),
            };
            Some(Verdict::Unknown {
                trace,
                cause: cause.clone(),
            })
        }
        (Judged::Final(verdict), Fate::Written(_)) => Some(verdict),
        // Judged on a state that ran ahead of the log.
        (Judged::Final(_), Fate::Moved(_)) => None,
        (_, Fate::Failed(cause) | Fate::Unknown(_, cause)) => Some(Verdict::Failed(cause.clone())),
    }
}
