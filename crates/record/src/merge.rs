//! Several runs, or parts of one, as one recording; and what happened in a recording between two moments.

use std::collections::HashMap;

use crate::recording::{Class, Environment, Kind, Lock, Mode, Recording, Site};

impl Recording {
    /// Adds another run, or another part of this one.
    pub fn absorb(&mut self, other: Recording) {
        if self.processes.is_empty() && self.classes.is_empty() {
            *self = other;
            return;
        }
        self.environment.absorb(&other.environment);
        self.by_lock |= other.by_lock;
        if other.mode == Mode::Converted {
            self.mode = Mode::Converted;
        }
        self.processes.extend(other.processes);
        let sums = self.dropped.iter_mut().chain(&mut self.kept);
        for (sum, more) in sums.zip(other.dropped.into_iter().chain(other.kept)) {
            *sum = sum.saturating_add(more);
        }
        self.converted = self.converted.saturating_add(other.converted);
        for class in other.classes {
            match self.classes.iter_mut().find(|c| c.kind == class.kind && c.name == class.name) {
                Some(same) => same.absorb(class),
                None => self.classes.push(class),
            }
        }
        for lock in other.locks {
            match self.locks.iter_mut().find(|l| l.is_same(&lock)) {
                Some(same) => {
                    same.exclusive.add(&lock.exclusive);
                    same.shared.add(&lock.shared);
                }
                None => self.locks.push(lock),
            }
        }
        if self.cost.is_none() {
            self.cost = other.cost;
        }
        for sentence in other.unseen {
            if !self.unseen.contains(&sentence) {
                self.unseen.push(sentence);
            }
        }
    }

    /// What happened since `earlier`, which is this run as it was before. The lengths of the observed
    /// time are the caller's to correct.
    pub fn since(&self, earlier: &Recording) -> Recording {
        let mut window = self.clone();
        for class in &mut window.classes {
            let same = |c: &&Class| c.kind == class.kind && c.name == class.name;
            let Some(before) = earlier.classes.iter().find(same) else { continue };
            class.exclusive = class.exclusive.since(&before.exclusive);
            class.shared = class.shared.since(&before.shared);
            let sites: HashMap<&str, &Site> =
                before.sites.iter().map(|site| (site.name.as_str(), site)).collect();
            for site in &mut class.sites {
                if let Some(before) = sites.get(site.name.as_str()) {
                    site.exclusive = site.exclusive.since(&before.exclusive);
                    site.shared = site.shared.since(&before.shared);
                }
            }
            class.sites.retain(|site| !(site.exclusive.is_empty() && site.shared.is_empty()));
        }
        window.classes.retain(|class| !(class.exclusive.is_empty() && class.shared.is_empty()));
        let locks: HashMap<_, &Lock> = earlier.locks.iter().map(|l| (l.identity(), l)).collect();
        for lock in &mut window.locks {
            if let Some(before) = locks.get(&lock.identity()) {
                let (exclusive, shared) = (&before.exclusive, &before.shared);
                (lock.exclusive, lock.shared) =
                    (lock.exclusive.since(exclusive), lock.shared.since(shared));
            }
        }
        window.locks.retain(|lock| !(lock.exclusive.is_empty() && lock.shared.is_empty()));
        for (now, before) in window.dropped.iter_mut().zip(earlier.dropped) {
            *now = now.saturating_sub(before);
        }
        window
    }
}

impl Environment {
    fn absorb(&mut self, other: &Environment) {
        let (first, second) = if other.start_epoch_ns < self.start_epoch_ns {
            (other, &*self)
        } else {
            (&*self, other)
        };
        // The time that either covers; runs may overlap, or lie days apart.
        let first_end = first.start_epoch_ns.saturating_add(first.elapsed_ns);
        let second_end = second.start_epoch_ns.saturating_add(second.elapsed_ns);
        let overlap = first_end.min(second_end).saturating_sub(second.start_epoch_ns);
        let elapsed = first.elapsed_ns.saturating_add(second.elapsed_ns).saturating_sub(overlap);
        let cpu_ns = first.cpu_ns.zip(second.cpu_ns).map(|(a, b)| a.saturating_add(b));
        let cpus = first.cpus.max(second.cpus);
        *self = Environment { elapsed_ns: elapsed, cpu_ns, cpus, ..first.clone() };
    }
}

impl Class {
    fn absorb(&mut self, other: Class) {
        self.locks = self.locks.saturating_add(other.locks);
        self.exclusive.add(&other.exclusive);
        self.shared.add(&other.shared);
        for site in other.sites {
            match self.sites.iter_mut().find(|s| s.name == site.name) {
                Some(same) => {
                    same.exclusive.add(&site.exclusive);
                    same.shared.add(&site.shared);
                }
                None => self.sites.push(site),
            }
        }
    }
}

impl Lock {
    fn is_same(&self, other: &Lock) -> bool {
        self.identity() == other.identity()
    }

    fn identity(&self) -> (u32, u64, Kind, &str) {
        (self.pid, self.address, self.kind, &self.class)
    }
}
