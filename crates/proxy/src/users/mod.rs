//! The users of a process: which there are, what each may ask for, and what each has in use. All workers share them.

pub(crate) mod access;
pub(crate) mod process_workers;
pub(crate) mod quota;
