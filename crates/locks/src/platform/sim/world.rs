//! The scheduler behind [`Sim`](super::Sim): who runs, who waits for what, what time it is.

use std::boxed::Box;
use std::cell::{Cell, RefCell};
use std::vec::Vec;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Stack of a simulated thread: room for a panic's backtrace.
const STACK_BYTES: usize = 256 * 1024;
/// Longest a thread is stalled between two steps: longer than any patience of a lock.
const MAX_STALL_NS: u64 = 10_000_000;

/// What a simulated thread is waiting for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Blocked {
    /// A write to the word at `address`, or time `until`.
    Spinning { address: usize, until: Option<u64> },
    /// A wake-up on the word at `address`, or time `until`.
    Parked { address: usize, until: Option<u64> },
    /// Time `until`.
    Asleep { until: u64 },
}

impl Blocked {
    fn until(self) -> Option<u64> {
        match self {
            Blocked::Spinning { until, .. } | Blocked::Parked { until, .. } => until,
            Blocked::Asleep { until } => Some(until),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    Ready,
    Blocked(Blocked),
    Done,
}

#[derive(Debug)]
struct Inner {
    random: u64,
    time: u64,
    steps: u64,
    /// One step in this many may switch threads.
    switch_one_in: u64,
    running: usize,
    threads: Vec<State>,
    /// Whether the last wait of a thread ended by time rather than by another thread.
    timed_out: Vec<bool>,
}

/// One run's threads and clock.
pub(super) struct World {
    inner: RefCell<Inner>,
    /// The running thread's way back to the scheduler.
    yielder: Cell<*const Yielder<(), ()>>,
}

std::thread_local! {
    static CURRENT: Cell<*const World> = const { Cell::new(core::ptr::null()) };
}

impl World {
    /// Calls `f` with the run this code is a simulated thread of, if it is one.
    pub(super) fn with<T>(f: impl FnOnce(&World) -> T) -> Option<T> {
        let world = CURRENT.get();
        // SAFETY: `run` sets the pointer only while a coroutine of its own `World` executes, and
        // the world outlives its coroutines.
        unsafe { world.as_ref() }.map(f)
    }

    pub(super) fn time(&self) -> u64 {
        self.inner.borrow().time
    }

    pub(super) fn thread(&self) -> usize {
        self.inner.borrow().running
    }

    pub(super) fn below(&self, bound: u64) -> u64 {
        self.inner.borrow_mut().below(bound)
    }

    pub(super) fn one_in(&self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// Time passes; perhaps other threads run.
    pub(super) fn step(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.steps += 1;
        inner.time += 1 + inner.below(20);
        if inner.below(2048) == 0 {
            // Of any order of magnitude, each as likely.
            let longest = MAX_STALL_NS >> inner.below(16);
            let until = inner.time + inner.below(longest);
            drop(inner);
            return self.block(Blocked::Asleep { until });
        }
        let switch_one_in = inner.switch_one_in;
        if inner.below(switch_one_in) == 0 {
            drop(inner);
            self.suspend();
        }
    }

    /// Runs other threads until what the calling thread waits for has come.
    pub(super) fn block(&self, blocked: Blocked) {
        {
            let mut inner = self.inner.borrow_mut();
            let running = inner.running;
            inner.timed_out[running] = false;
            inner.threads[running] = State::Blocked(blocked);
        }
        self.suspend();
    }

    /// Sleeps on a word; false if time ended the sleep.
    pub(super) fn park(&self, address: usize, until: Option<u64>) -> bool {
        self.block(Blocked::Parked { address, until });
        let inner = self.inner.borrow();
        !inner.timed_out[inner.running]
    }

    /// Ends the waits of those who spin on the word at `address`.
    pub(super) fn written(&self, address: usize) {
        for state in &mut self.inner.borrow_mut().threads {
            if matches!(state, State::Blocked(Blocked::Spinning { address: on, .. }) if *on == address)
            {
                *state = State::Ready;
            }
        }
    }

    /// Ends the sleep of up to `count` threads on the word at `address`, whichever.
    pub(super) fn wake(&self, address: usize, count: u32) {
        let mut inner = self.inner.borrow_mut();
        for _ in 0..count {
            let parked = |state: &State| matches!(state, State::Blocked(Blocked::Parked { address: on, .. }) if *on == address);
            let Some(index) = inner.pick(parked) else { break };
            inner.threads[index] = State::Ready;
        }
    }

    fn suspend(&self) {
        let yielder = self.yielder.get();
        // SAFETY: the yielder of the coroutine that is running lives on that coroutine's stack
        // until it returns, and it is the one running: `run` sets the pointer before each resume.
        unsafe { (*yielder).suspend(()) };
    }
}

impl Inner {
    fn new(seed: u64, threads: usize) -> Self {
        // Any seed will do for splitmix; mixing once keeps neighbouring seeds apart.
        let mut inner = Inner {
            random: seed,
            time: 0,
            steps: 0,
            switch_one_in: 1,
            running: 0,
            threads: std::vec![State::Ready; threads],
            timed_out: std::vec![false; threads],
        };
        inner.switch_one_in = [1, 2, 4, 16][inner.below(4) as usize];
        inner
    }

    /// The next random number below `bound`, by splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (u128::from(z ^ z >> 31) * u128::from(bound)).wrapping_shr(64) as u64
    }

    /// A random thread in a state that `wanted` accepts.
    fn pick(&mut self, wanted: impl Fn(&State) -> bool) -> Option<usize> {
        let count = self.threads.iter().filter(|state| wanted(state)).count() as u64;
        if count == 0 {
            return None;
        }
        let nth = self.below(count) as usize;
        (0..self.threads.len()).filter(|index| wanted(&self.threads[*index])).nth(nth)
    }

    /// Ends the waits whose time has come.
    fn ring(&mut self) {
        for (index, state) in self.threads.iter_mut().enumerate() {
            if let State::Blocked(blocked) = state
                && blocked.until().is_some_and(|until| until <= self.time)
            {
                *state = State::Ready;
                self.timed_out[index] = true;
            }
        }
    }

    /// The thread to run next; `None` if all are done, `Err` if all that are left wait for ever.
    fn next(&mut self) -> Result<Option<usize>, ()> {
        loop {
            self.ring();
            if let Some(index) = self.pick(|state| matches!(state, State::Ready)) {
                return Ok(Some(index));
            }
            let alarms = self.threads.iter().filter_map(|state| match state {
                State::Blocked(blocked) => blocked.until(),
                _ => None,
            });
            match alarms.min() {
                Some(alarm) => self.time = self.time.max(alarm),
                None if self.threads.iter().all(|state| matches!(state, State::Done)) => {
                    return Ok(None);
                }
                None => return Err(()),
            }
        }
    }
}

/// What a run took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Atomic operations executed.
    pub steps: u64,
    /// Virtual time at the end.
    pub ns: u64,
}

/// Runs `threads` to their ends in the order that `seed` gives.
///
/// # Panics
/// Names the seed if the threads that are left all wait for one another. A panic in a thread ends
/// the run and comes out of this call; the other threads are dropped where they stand, without
/// running what they would have dropped.
pub fn run<'a>(seed: u64, threads: Vec<Box<dyn FnOnce() + 'a>>) -> Run {
    type Thread = Coroutine<(), (), (), DefaultStack>;

    /// Abandons what still stands when a run ends early: unwinding those threads would run their
    /// code outside of any run.
    struct Threads(Vec<Thread>);
    impl Drop for Threads {
        fn drop(&mut self) {
            CURRENT.set(core::ptr::null());
            for thread in &mut self.0 {
                if thread.started() && !thread.done() {
                    // SAFETY: nothing outside refers to the coroutine's stack: locks keep no nodes
                    // there that outlive this run, and a test does not look at them after a panic.
                    unsafe { thread.force_reset() };
                }
            }
        }
    }

    let world = World {
        inner: RefCell::new(Inner::new(seed, threads.len())),
        yielder: Cell::new(core::ptr::null()),
    };
    let mut yielders: Vec<Cell<*const Yielder<(), ()>>> = Vec::new();
    yielders.resize_with(threads.len(), || Cell::new(core::ptr::null()));
    let yielders = &yielders;

    let outer = CURRENT.get();
    assert!(outer.is_null(), "a simulated thread cannot start a simulation");
    let mut coroutines = Threads(Vec::new());
    for (index, body) in threads.into_iter().enumerate() {
        let stack = DefaultStack::new(STACK_BYTES).expect("memory for a simulated thread's stack");
        let enter = move |yielder: &Yielder<(), ()>, ()| {
            yielders[index].set(yielder);
            World::with(|world| world.yielder.set(yielder));
            body();
        };
        // SAFETY: `enter` borrows for 'a and this call's locals only; `Threads` drops, or resets,
        // every coroutine before this call returns.
        coroutines.0.push(unsafe { Coroutine::with_stack_unchecked(stack, enter) });
    }

    loop {
        let next = world.inner.borrow_mut().next();
        let index = match next {
            Ok(Some(index)) => index,
            Ok(None) => break,
            Err(()) => panic!("deadlock, seed {seed}: {:?}", world.inner.borrow().threads),
        };
        world.inner.borrow_mut().running = index;
        world.yielder.set(yielders[index].get());
        CURRENT.set(&world);
        let result = coroutines.0[index].resume(());
        CURRENT.set(core::ptr::null());
        if let CoroutineResult::Return(()) = result {
            world.inner.borrow_mut().threads[index] = State::Done;
        }
    }
    let inner = world.inner.borrow();
    Run { steps: inner.steps, ns: inner.time }
}
