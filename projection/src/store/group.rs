//! Many threads, one transaction: commands that wait are decided together, written with one system call and
//! share a sync.
//!
//! Whoever waits and finds nobody leading leads: it takes every waiting order, decides them in order under the
//! append lock, and wakes whom it served and one of those who wait on. Waiting, leading and waking share one
//! lock, because a wake-up for a thread that has not begun to wait is lost.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::{Condvar, Mutex, MutexGuard, RwLockWriteGuard};
use tenure_core::id::{Moment, Position};
use tenure_core::refusal::Refusal;
use tenure_log::journal::{Appended, Deadline, TransactError};
use tenure_log::position::Head;

use crate::error::{Error, Failure, Trace};

use super::answer::{Answer, Done};
use super::judge::{Judged, Kept, judge};
use super::keys::{KeyDigest, Prior};
use super::live::Live;
use super::prepare::Prepared;
use super::{Store, refuse, snapshot};

/// Orders that wait for a leader.
#[derive(Default)]
pub(super) struct Group {
    waiting: Vec<Arc<Order>>,
    led: bool,
}

/// One command on its way.
pub(super) struct Order {
    prepared: Mutex<Prepared>,
    verdict: Mutex<Option<Verdict>>,
    /// Whether a thread sleeps on it; changed under the group's lock.
    waited: AtomicBool,
    changed: Condvar,
    waker: Mutex<Option<Waker>>,
}

/// What became of an order under the lock; durability is still to come.
pub(super) enum Verdict {
    /// Appended, or done before: the answer, where it stands, and the position that it depends on. The
    /// receipt of what was done before is looked up when it is answered.
    Done {
        receipt: Option<Head>,
        at: Moment,
        answer: Box<Answer>,
        repeated: bool,
        judged: Position,
    },
    /// Refused; the judgement depends on everything up to that position.
    Refused {
        refusal: Box<Refusal>,
        judged: Position,
        /// How much of it is in the log.
        kept: Kept,
    },
    /// The same call was done before: the first answer, or a refusal, is found when it is answered.
    Again { prior: Prior, judged: Position },
    /// It may be in the log.
    Unknown { trace: Trace, cause: Error },
    /// Nothing happened.
    Failed(Error),
}

/// A call on its way. Dropping the ticket does not take the call back; a call that nobody waits for is decided
/// with the next one that somebody waits for, or by [`Store::drive`].
#[must_use = "a call that nobody waits for may have been refused"]
pub struct Ticket {
    store: Store,
    order: Arc<Order>,
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
        refuse::settle(&self.store, &self.order.prepared.lock(), verdict)
    }

    fn verdict(&self) -> Verdict {
        let mut group = self.store.0.group.lock();
        loop {
            if let Some(verdict) = self.order.verdict.lock().take() {
                return verdict;
            }
            if group.led {
                self.order.waited.store(true, Ordering::Relaxed);
                self.order.changed.wait(&mut group);
                self.order.waited.store(false, Ordering::Relaxed);
            } else {
                group = lead(&self.store, group);
            }
        }
    }
}

/// Ready when the call was decided; the last poll waits for its sync unless that was done. Polling does no work: some thread has to wait for a ticket or
/// call [`Store::drive`]. A ticket is polled to its end once.
impl Future for Ticket {
    type Output = Result<Done, Failure>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Before the look, so that a verdict given in between wakes it.
        *self.order.waker.lock() = Some(context.waker().clone());
        match self.order.verdict.lock().take() {
            Some(verdict) => Poll::Ready(refuse::settle(
                &self.store,
                &self.order.prepared.lock(),
                verdict,
            )),
            None => Poll::Pending,
        }
    }
}

/// Queues a prepared call.
pub(super) fn submit(store: &Store, prepared: Prepared) -> Ticket {
    let order = Arc::new(Order {
        prepared: Mutex::new(prepared),
        verdict: Mutex::new(None),
        waited: AtomicBool::new(false),
        changed: Condvar::new(),
        waker: Mutex::new(None),
    });
    store.0.group.lock().waiting.push(Arc::clone(&order));
    Ticket {
        store: store.clone(),
        order,
    }
}

impl Store {
    /// Decides everything that was submitted and waits until it is durable: what a runtime calls on a thread
    /// that may block, while its tasks await their tickets.
    ///
    /// # Errors
    /// When the log cannot be synced.
    pub fn drive(&self) -> Result<(), Error> {
        let mut group = self.0.group.lock();
        let mut served = Vec::new();
        while !group.led && !group.waiting.is_empty() {
            served.extend(group.waiting.iter().cloned());
            group = lead(self, group);
        }
        drop(group);
        let head = self.live.read().head;
        self.journal()
            .wait_durable(head.position, Deadline::NEVER)?;
        for order in served {
            if let Some(waker) = order.waker.lock().take() {
                waker.wake();
            }
        }
        Ok(())
    }
}

/// Most orders decided in one transaction: bounds how long the append lock is held.
const ORDERS_MAX: usize = 256;

/// Decides everything that waits, wakes whom it served, and one who waits on.
fn lead<'s>(store: &'s Store, mut group: MutexGuard<'s, Group>) -> MutexGuard<'s, Group> {
    let count = group.waiting.len().min(ORDERS_MAX);
    let orders: Vec<Arc<Order>> = group.waiting.drain(..count).collect();
    group.led = true;
    drop(group);
    let verdicts = transact(store, &orders);
    let mut group = store.0.group.lock();
    group.led = false;
    for (order, verdict) in orders.iter().zip(verdicts) {
        *order.verdict.lock() = Some(verdict);
        order.changed.notify_one();
        if let Some(waker) = order.waker.lock().take() {
            waker.wake();
        }
    }
    if let Some(next) = group
        .waiting
        .iter()
        .find(|o| o.waited.load(Ordering::Relaxed))
    {
        next.changed.notify_one();
    }
    group
}

/// Decides orders in order under the append lock until each has a verdict.
fn transact(store: &Store, orders: &[Arc<Order>]) -> Vec<Verdict> {
    let mut verdicts: Vec<Option<Verdict>> = orders.iter().map(|_| None).collect();
    loop {
        let open: Vec<usize> = (0..orders.len())
            .filter(|n| verdicts[*n].is_none())
            .collect();
        if open.is_empty() {
            break;
        }
        attempt(store, orders, &open, &mut verdicts);
    }
    verdicts
        .into_iter()
        .map(|v| v.expect("the loop ends when every order has one"))
        .collect()
}

/// One transaction over the orders that are open. What a decision needs beyond the tail is read before: inside
/// the transaction nothing but the tail is looked at.
fn attempt(store: &Store, orders: &[Arc<Order>], open: &[usize], verdicts: &mut [Option<Verdict>]) {
    let key = |n: &usize| Some(orders[*n].prepared.lock().request.input.key?.digest);
    let keys: Vec<KeyDigest> = open.iter().filter_map(key).collect();
    let known = match store.ready(&keys) {
        Ok(head) => head,
        Err(error) => return fail(open, verdicts, &error),
    };
    let deadline = deadline(orders, open);
    let mut live: Option<RwLockWriteGuard<'_, Live>> = None;
    let mut judged: Vec<Judged> = Vec::new();
    let journal = store.journal();
    let result = journal.transact(known, deadline, &mut |tail| {
        let live = live.insert(store.live.write());
        judged.clear();
        let torn = journal.torn();
        match judge(
            live,
            &tail,
            &torn,
            open.iter().map(|n| &orders[*n].prepared),
        ) {
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
    conclude(store, orders, open, verdicts, (judged, live), result);
}

fn fail(open: &[usize], verdicts: &mut [Option<Verdict>], error: &Error) {
    for n in open {
        verdicts[*n] = Some(Verdict::Failed(error.clone()));
    }
}

/// The latest deadline among the orders: who can wait longer carries who cannot.
fn deadline(orders: &[Arc<Order>], open: &[usize]) -> Deadline {
    let now = std::time::Instant::now();
    let left = open
        .iter()
        .map(|n| orders[*n].prepared.lock().deadline.remaining(now));
    match left.reduce(|a, b| Some(a?.max(b?))).flatten() {
        Some(left) => Deadline::at(now + left),
        None => Deadline::NEVER,
    }
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
    orders: &[Arc<Order>],
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
        let due = snapshot::is_due(live.since_snapshot, live.snapshot_bytes);
        store.0.snapshot_due.store(due, Ordering::Relaxed);
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
        verdicts[*n] = verdict(store, &orders[*n].prepared.lock(), judged, &fate);
    }
}

/// The verdict on one order; `None`: to be decided again.
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
        (Judged::Unread, Fate::Written(_) | Fate::Moved(_)) => None,
        (_, Fate::Failed(cause) | Fate::Unknown(_, cause)) => Some(Verdict::Failed(cause.clone())),
    }
}
