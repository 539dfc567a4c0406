//! Lists of CPUs as `taskset -c` takes them: `0-3,6`.

/// The CPUs that `list` names, ascending, each once.
///
/// # Errors
/// One line that says which part is wrong, or that this process may not use a CPU.
pub fn parse(list: &str) -> Result<Vec<usize>, String> {
    let number = |text: &str| {
        let wrong = || format!("{text:?} in the CPU list {list:?} is not a CPU number");
        let cpu = text.trim().parse::<usize>().map_err(|_| wrong())?;
        if cpu < libc::CPU_SETSIZE as usize { Ok(cpu) } else { Err(wrong()) }
    };
    let mut cpus = Vec::new();
    for part in list.split(',') {
        match part.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return Err(format!("{part:?} in the CPU list {list:?} runs backwards"));
                }
                cpus.extend(first..=last);
            }
            None => cpus.push(number(part)?),
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    let allowed = allowed();
    if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        return Err(format!("CPU {cpu} of the list {list:?} cannot be used here"));
    }
    Ok(cpus)
}

/// The CPUs that this process may use.
pub fn allowed() -> Vec<usize> {
    // SAFETY: an all-zero set is the empty set, and its size is passed along.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        set
    };
    // SAFETY: every index is below CPU_SETSIZE.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// The kernel's form of a list of CPUs, each below CPU_SETSIZE as [`parse`] sees to.
pub(crate) fn set_of(cpus: &[usize]) -> libc::cpu_set_t {
    // SAFETY: an all-zero set is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        // SAFETY: the index is below CPU_SETSIZE.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        let first = allowed()[0];
        assert_eq!(parse(&format!("{first}")), Ok(vec![first]));
        assert_eq!(parse(&format!("{first}-{first},{first}")), Ok(vec![first]));
        for wrong in ["", "x", "1-", "3-1", "0,,1", "100000", "-1", "1023"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
