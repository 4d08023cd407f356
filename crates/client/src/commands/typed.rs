//! A request that knows what its reply is made into.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use crate::{Call, Client, Command, Error, FromReply};

/// A request whose reply is made into `T`. `S` is what sends it, once that is said: with a [`Client`] it can be awaited.
#[must_use = "a request does nothing until a client sends it"]
pub struct Typed<T, S = ()> {
    command: Command,
    /// Where options stand.
    place: usize,
    sender: S,
    output: PhantomData<fn() -> T>,
}

impl<T> Typed<T> {
    pub(super) fn new(command: Command) -> Self {
        let place = command.place();
        Self::with_place(command, place)
    }

    pub(super) fn with_place(command: Command, place: usize) -> Self {
        Self { command, place, sender: (), output: PhantomData }
    }

    /// Sends the request with this client.
    pub fn on(self, client: &Client) -> Typed<T, &Client> {
        Typed { command: self.command, place: self.place, sender: client, output: PhantomData }
    }
}

impl<'c, T: FromReply> Typed<T, &'c Client> {
    /// How long the call may take, instead of what the client's settings say.
    pub fn deadline(self, limit: Duration) -> Call<'c, T> {
        self.into_future().deadline(limit)
    }

    /// Sends it and waits in this thread, which reads for all callers of the client meanwhile.
    pub fn wait(self) -> Result<T, Error> {
        self.into_future().wait()
    }
}

impl<'c, T: FromReply> IntoFuture for Typed<T, &'c Client> {
    type Output = Result<T, Error>;
    type IntoFuture = Call<'c, T>;

    fn into_future(self) -> Call<'c, T> {
        self.sender.call(self.command)
    }
}

impl<T, S> Typed<T, S> {
    /// Adds an option behind those that were added before.
    pub(super) fn with(mut self, add: impl FnOnce(&mut Command)) -> Self {
        let end = self.command.place();
        add(&mut self.command);
        let added = self.command.place() - end;
        self.command.move_back(self.place, end);
        self.place += added;
        self
    }

    /// The reply is made into another type.
    pub fn cast<U>(self) -> Typed<U, S> {
        Typed { command: self.command, place: self.place, sender: self.sender, output: PhantomData }
    }

    /// The request may be executed twice: it is sent again when it is not known whether it was executed.
    pub fn idempotent(mut self) -> Self {
        self.command = self.command.idempotent();
        self
    }
}

impl<T, S: Clone> Clone for Typed<T, S> {
    fn clone(&self) -> Self {
        Self { command: self.command.clone(), place: self.place, sender: self.sender.clone(), output: PhantomData }
    }
}

impl<T, S> fmt::Debug for Typed<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.command.fmt(f)
    }
}

impl<T, S> From<Typed<T, S>> for Command {
    fn from(typed: Typed<T, S>) -> Self {
        typed.command
    }
}

/// Makes the type of a request that has options.
macro_rules! builder {
    ($(#[$about:meta])* $name:ident, $output:ty) => {
        $(#[$about])*
        #[must_use = "a request does nothing until a client sends it"]
        #[derive(Debug)]
        pub struct $name<T = $output, S = ()>(pub(in crate::commands) crate::commands::Typed<T, S>);

        impl $name {
            fn new(command: crate::Command, place: usize) -> Self {
                Self(crate::commands::Typed::with_place(command, place))
            }
        }

        impl<T> $name<T> {
            /// Sends the request with this client.
            pub fn on(self, client: &crate::Client) -> $name<T, &crate::Client> {
                $name(self.0.on(client))
            }
        }

        impl<'c, T: crate::FromReply> $name<T, &'c crate::Client> {
            /// How long the call may take, instead of what the client's settings say.
            pub fn deadline(self, limit: std::time::Duration) -> crate::Call<'c, T> {
                self.0.deadline(limit)
            }

            /// Sends it and waits in this thread, which reads for all callers of the client meanwhile.
            pub fn wait(self) -> Result<T, crate::Error> {
                self.0.wait()
            }
        }

        impl<'c, T: crate::FromReply> std::future::IntoFuture for $name<T, &'c crate::Client> {
            type Output = Result<T, crate::Error>;
            type IntoFuture = crate::Call<'c, T>;

            fn into_future(self) -> crate::Call<'c, T> {
                self.0.into_future()
            }
        }

        impl<T, S> $name<T, S> {
            fn with(self, add: impl FnOnce(&mut crate::Command)) -> Self {
                Self(self.0.with(add))
            }

            #[allow(dead_code, reason = "the options of some leave the reply as it is")]
            fn retyped<U>(self) -> $name<U, S> {
                $name(self.0.cast())
            }

            /// The reply is made into another type.
            pub fn cast<U>(self) -> crate::commands::Typed<U, S> {
                self.0.cast()
            }

            /// The request may be executed twice: it is sent again when it is not known whether it was executed.
            pub fn idempotent(self) -> Self {
                Self(self.0.idempotent())
            }
        }

        impl<T, S: Clone> Clone for $name<T, S> {
            fn clone(&self) -> Self {
                Self(self.0.clone())
            }
        }

        impl<T, S> From<$name<T, S>> for crate::commands::Typed<T, S> {
            fn from(request: $name<T, S>) -> Self {
                request.0
            }
        }

        impl<T, S> From<$name<T, S>> for crate::Command {
            fn from(request: $name<T, S>) -> Self {
                request.0.into()
            }
        }
    };
}

/// Makes the type of an argument that is one of several words.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $( $(#[$doc:meta])* $word:ident = $token:literal, )+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $( $(#[$doc])* $word, )+
        }

        impl crate::ToArgs for $name {
            fn write_args(&self, command: &mut crate::Command) {
                command.push(match self {
                    $( Self::$word => $token, )+
                });
            }
        }

        impl crate::commands::ToArg for $name {}
    };
}

pub(crate) use {builder, words};
