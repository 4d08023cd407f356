//! The stack on which the interpreter runs, and the way onto it and back.

use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use super::exchange::{Exchange, Order, Report};
use super::vm;
use crate::limits::SCRIPT_STACK_BYTES;

/// One interpreter with its stack.
pub(super) struct Host {
    routine: Coroutine<Order, Report, ()>,
    pub(super) exchange: Rc<Exchange>,
}

impl Host {
    /// A fresh interpreter. `None`: there is no memory for its stack.
    pub(super) fn new() -> Option<Self> {
        let stack = DefaultStack::new(SCRIPT_STACK_BYTES).ok()?;
        let exchange = Rc::new(Exchange::default());
        let for_vm = Rc::clone(&exchange);
        let routine = Coroutine::with_stack(stack, move |way, _| vm::serve(way, &for_vm));
        let mut host = Self { routine, exchange };
        matches!(host.resume(Order::Go), Some(Report::Ready)).then_some(host)
    }

    /// Gives the vm an order and waits for what comes of it. `None`: the vm has ended.
    pub(super) fn resume(&mut self, order: Order) -> Option<Report> {
        if self.routine.done() {
            return None;
        }
        match self.routine.resume(order) {
            CoroutineResult::Yield(report) => Some(report),
            CoroutineResult::Return(()) => None,
        }
    }
}

impl Drop for Host {
    /// A script that is under way is ended by an error of its own: its stack holds C frames, which must not be unwound.
    fn drop(&mut self) {
        while self.resume(Order::End).is_some() {}
    }
}
