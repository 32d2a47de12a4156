//! Many threads, one transaction: commands that wait are decided together, written with one system call and
//! share a sync.
//!
//! Two parts are played by whoever waits and finds nobody at it. One *leads*: it takes the oldest batch and decides its
//! orders in order under the append lock. One *syncs*: it waits until everything that was decided is durable, and wakes
//! whom that served. While a sync is under way the next batches are decided, so that the next sync begins at once and
//! carries all of them. A thread sleeps once for each call, and one system call wakes all that a sync served.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tenure_core::id::{Moment, Position};
use tenure_core::refusal::Refusal;
use tenure_log::journal::{Appended, Deadline, TransactError};
use tenure_log::position::{self, Head};

use crate::error::{Error, Failure, Trace};
use crate::sync::{Mutex, MutexGuard, RwLockWriteGuard};
use crate::zoo::planted;

use super::answer::{Answer, Done};
use super::gate::{Gate, Stage};
use super::judge::{Judged, Kept, judge};
use super::keys::{KeyDigest, Prior};
use super::live::Live;
use super::prepare::Prepared;
use super::{Store, refuse, snapshot};

/// What is on its way.
#[derive(Default)]
pub(super) struct Group {
    /// Batches that nobody decides yet, oldest first.
    queue: VecDeque<Batch>,
    /// Whether a thread decides a batch.
    led: bool,
    /// Batches that were decided since the sync that is under way began.
    decided: Vec<Decided>,
    /// Whether a thread waits for a sync, or is about to.
    syncing: bool,
    /// How many orders the last sync served.
    served: usize,
}

impl Group {
    /// Whether a batch may be decided now. While a sync is under way there is time to gather: who decides each order as
    /// it comes pays for a transaction each, and the sync carries no more for it. Half of those who were served last are
    /// enough, so that most are decided when it ends.
    fn is_open(&self) -> bool {
        let orders = self.queue.iter().map(|batch| batch.orders.len());
        !self.led && (!self.syncing || orders.sum::<usize>() >= self.served / 2)
    }

    /// Asks one of those who sleep to sync or to lead, where one may; where nobody sleeps, whoever comes next does.
    fn pass_on(&self) {
        let syncs = |batch: &Decided| batch.gate.offer(Stage::ToSync);
        if !self.syncing && self.decided.iter().any(syncs) {
            return;
        }
        if self.is_open() {
            let leads = |batch: &Batch| batch.gate.offer(Stage::ToLead);
            let _: bool = self.queue.iter().any(leads);
        }
    }
}

/// Orders that are decided in one transaction.
#[derive(Default)]
struct Batch {
    gate: Arc<Gate>,
    orders: Vec<Arc<Order>>,
}

/// A batch whose orders have verdicts, and whose answers depend on a sync.
struct Decided {
    gate: Arc<Gate>,
    orders: Vec<Arc<Order>>,
    depends: Position,
}

/// One command on its way.
pub(super) struct Order {
    pub prepared: Mutex<Prepared>,
    verdict: Mutex<Option<Verdict>>,
    waker: Mutex<Option<Waker>>,
}

impl Order {
    /// One that nobody has decided.
    pub fn new(prepared: Prepared) -> Self {
        Self {
            prepared: Mutex::new(prepared),
            verdict: Mutex::new(None),
            waker: Mutex::new(None),
        }
    }
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

impl Verdict {
    /// The position that has to be durable before it is answered.
    fn depends_on(&self) -> Option<Position> {
        match self {
            _ if planted("answered-before-durable") => None,
            Self::Done { judged, .. }
            | Self::Refused { judged, .. }
            | Self::Again { judged, .. } => Some(*judged),
            Self::Unknown { .. } | Self::Failed(_) => None,
        }
    }
}

/// A call on its way. Dropping the ticket does not take the call back; a call that nobody waits for is decided
/// with the next one that somebody waits for, or by [`Store::drive`].
#[must_use = "a call that nobody waits for may have been refused"]
pub struct Ticket {
    store: Store,
    gate: Arc<Gate>,
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
        let deadline = self.order.prepared.lock().deadline;
        let decided = || self.order.verdict.lock().is_some();
        let synced = serve(&self.store, &self.gate, deadline, decided);
        self.answer(synced)
    }

    fn answer(&self, synced: Position) -> Result<Done, Failure> {
        let verdict = self.order.verdict.lock().take();
        let verdict = verdict.expect("a ticket is answered once, when its batch was decided");
        refuse::settle(&self.store, &self.order.prepared.lock(), verdict, synced)
    }
}

/// Ready when the call is answered. Polling does no work: some thread has to wait for a ticket or call
/// [`Store::drive`]. A ticket is polled to its end once.
impl Future for Ticket {
    type Output = Result<Done, Failure>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Before the look, so that an answer given in between wakes it.
        *self.order.waker.lock() = Some(context.waker().clone());
        if self.gate.stage() == Stage::Served {
            Poll::Ready(self.answer(self.gate.synced()))
        } else {
            Poll::Pending
        }
    }
}

/// Queues a prepared call.
pub(super) fn submit(store: &Store, order: Arc<Order>) -> Ticket {
    let mut group = store.0.group.lock();
    let full = |batch: &Batch| batch.orders.len() >= ORDERS_MAX;
    if group.queue.back().is_none_or(full) {
        group.queue.push_back(Batch::default());
    }
    let batch = group.queue.back_mut();
    let batch = batch.expect("one with room stands at the end");
    batch.orders.push(Arc::clone(&order));
    let gate = Arc::clone(&batch.gate);
    drop(group);
    Ticket {
        store: store.clone(),
        gate,
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
        if let Some(gate) = self.newest_gate() {
            serve(self, &gate, Deadline::NEVER, || false);
        }
        let head = self.live.read().head;
        Ok(self
            .journal()
            .wait_durable(head.position, Deadline::NEVER)?)
    }

    /// Where those sleep who wait for what was submitted last, of what nobody syncs yet.
    fn newest_gate(&self) -> Option<Arc<Gate>> {
        let group = self.0.group.lock();
        let queued = group.queue.back().map(|batch| &batch.gate);
        let newest = queued.or(group.decided.last().map(|batch| &batch.gate));
        newest.map(Arc::clone)
    }
}

/// Most orders decided in one transaction: bounds how long the append lock is held.
const ORDERS_MAX: usize = 256;

/// How often a caller past its deadline looks whether its order was decided.
const NAP: Duration = Duration::from_millis(5);

/// Waits until the batch of that gate is answered, leading and syncing where nobody does; past the deadline, until
/// `decided`. Says up to where everything is known to be durable.
fn serve(store: &Store, gate: &Gate, deadline: Deadline, decided: impl Fn() -> bool) -> Position {
    loop {
        if gate.stage() == Stage::Served {
            return gate.synced();
        }
        let mut group = store.0.group.lock();
        let mut seen = gate.stage();
        match seen {
            // Whoever may not wait any longer does not wait for the syncs of others.
            Stage::Waiting | Stage::ToLead
                if group.is_open() || !group.led && deadline.passed(Instant::now()) =>
            {
                lead(store, group, gate, deadline);
                continue;
            }
            // It asks by itself, and somebody else syncs.
            Stage::Decided | Stage::ToSync if deadline.passed(Instant::now()) => {
                gate.set(Stage::Decided);
                group.pass_on();
                return Position(0);
            }
            Stage::Decided | Stage::ToSync if !group.syncing => {
                group.syncing = true;
                if !group.led && !group.queue.is_empty() {
                    group = decide_queue(store, group, None);
                }
                sync(store, group, deadline);
                continue;
            }
            // Somebody else was faster.
            Stage::ToLead => seen = gate.set(Stage::Waiting),
            Stage::ToSync => seen = gate.set(Stage::Decided),
            Stage::Waiting | Stage::Taken | Stage::Decided => {}
            Stage::Served => return gate.synced(),
        }
        gate.enter();
        drop(group);
        let left = deadline.remaining(Instant::now());
        gate.sleep(seen, left.map(|left| left.max(NAP)));
        if left.is_some() && deadline.passed(Instant::now()) && decided() {
            // It may have been woken to sync.
            store.0.group.lock().pass_on();
            return Position(0);
        }
    }
}

/// Decides every batch up to the one of `own`. Then syncs, where nobody does.
fn lead<'s>(store: &'s Store, mut group: MutexGuard<'s, Group>, own: &Gate, deadline: Deadline) {
    group = decide_queue(store, group, Some(own));
    if !group.syncing && !group.decided.is_empty() && !deadline.passed(Instant::now()) {
        return sync(store, group, deadline);
    }
    group.pass_on();
}

/// Decides every batch up to the one of `own`, or all that wait now.
fn decide_queue<'s>(
    store: &'s Store,
    mut group: MutexGuard<'s, Group>,
    own: Option<&Gate>,
) -> MutexGuard<'s, Group> {
    group.led = true;
    let newest = group.queue.back().map(|batch| Arc::clone(&batch.gate));
    let last = own.or(newest.as_deref());
    while let Some(Batch { gate, orders }) = group.queue.pop_front() {
        gate.set(Stage::Taken);
        drop(group);
        let verdicts = transact(store, &orders);
        let depends = verdicts.iter().filter_map(Verdict::depends_on).max();
        for (order, verdict) in orders.iter().zip(verdicts) {
            *order.verdict.lock() = Some(verdict);
        }
        let is_last = last.is_some_and(|last| std::ptr::eq(&*gate, last));
        if depends.is_none() {
            answer(&gate, &orders, Position(0));
        }
        group = store.0.group.lock();
        if let Some(depends) = depends {
            gate.set(Stage::Decided);
            group.decided.push(Decided {
                gate,
                orders,
                depends,
            });
        }
        if is_last {
            break;
        }
    }
    group.led = false;
    group
}

/// Waits until everything that is decided is durable, has somebody else go on, and wakes whom it served. Whoever may not
/// wait so long leaves it to others.
fn sync<'s>(store: &'s Store, mut group: MutexGuard<'s, Group>, deadline: Deadline) {
    group.syncing = true;
    let served = std::mem::take(&mut group.decided);
    for batch in &served {
        batch.gate.set(Stage::Taken);
    }
    // Whoever came while these were decided.
    group.pass_on();
    drop(group);
    let newest = served.iter().map(|batch| batch.depends).max();
    // Who is not told so asks itself, for as long as it may wait, and hears what is wrong.
    let synced = newest.filter(|Position(number)| {
        let wanted = position::Position(*number);
        store.journal().wait_durable(wanted, deadline).is_ok()
    });
    let mut group = store.0.group.lock();
    group.syncing = false;
    if synced.is_none() && deadline.passed(Instant::now()) {
        for batch in &served {
            batch.gate.set(Stage::Decided);
        }
        group.decided.splice(..0, served);
        return group.pass_on();
    }
    group.served = served.iter().map(|batch| batch.orders.len()).sum();
    group.pass_on();
    drop(group);
    for batch in served {
        answer(&batch.gate, &batch.orders, synced.unwrap_or_default());
    }
}

/// Wakes those who wait for a batch.
fn answer(gate: &Gate, orders: &[Arc<Order>], synced: Position) {
    gate.open(synced);
    for order in orders {
        if let Some(waker) = order.waker.lock().take() {
            waker.wake();
        }
    }
}

/// Decides orders in order under the append lock until each has a verdict.
fn transact(store: &Store, orders: &[Arc<Order>]) -> Vec<Verdict> {
    let mut verdicts: Vec<Option<Verdict>> = orders.iter().map(|_| None).collect();
    let mut before = 0_u32;
    loop {
        let open: Vec<usize> = (0..orders.len())
            .filter(|n| verdicts[*n].is_none())
            .collect();
        if open.is_empty() {
            break;
        }
        attempt(store, orders, &open, &mut verdicts, before > 0);
        before += 1;
    }
    verdicts
        .into_iter()
        .map(|v| v.expect("the loop ends when every order has one"))
        .collect()
}

/// One transaction over the orders that are open. What a decision needs beyond the tail is read before: inside
/// the transaction nothing but the tail is looked at.
fn attempt(
    store: &Store,
    orders: &[Arc<Order>],
    open: &[usize],
    verdicts: &mut [Option<Verdict>],
    again: bool,
) {
    let key = |n: &usize| Some(orders[*n].prepared.lock().request.input.key?.digest);
    let keys: Vec<KeyDigest> = open.iter().filter_map(key).collect();
    let known = match known(store, &keys, again) {
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

/// The head that the transaction shows what came behind. Where no key has to be looked up, that is the head that was read
/// last: the transaction reads on from where the writer stands, and nothing is read twice.
fn known(store: &Store, keys: &[KeyDigest], again: bool) -> Result<Head, Error> {
    let live = store.live.read();
    if keys.is_empty() && !live.tainted && !again {
        return Ok(live.head);
    }
    drop(live);
    store.ready(keys)
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
            Ok(appended) => live.settle(appended),
            Err(_) => live.tainted = true,
        }
        let due = snapshot::is_due(live.since_snapshot, live.snapshot_bytes);
        store.0.snapshot_due.store(due, Ordering::Relaxed);
    }
    let fate = match result {
        Ok(appended) => {
            store.0.supplies.lock().take_back(appended.drafts);
            Fate::Written(appended.heads)
        }
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
