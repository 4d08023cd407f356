//! Commands of the group scripting.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Run a script.
///
/// ```text
/// EVAL script numkeys [key [key ...]] [arg [arg ...]]
/// ```
///
/// Since 2.6.0. ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/eval/) and [Valkey](https://valkey.io/commands/eval/).
pub fn eval(script: impl ToArg, keys: impl ToArgs) -> Eval {
    let mut request = cmd("EVAL");
    script.write_args(&mut request);
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    Eval::new(request, place)
}

builder! {
    /// A request of [`eval()`] and its options.
    Eval, Reply
}

impl<T, S> Eval<T, S> {
    /// `arg [arg ...]`.
    pub fn arg(self, args: impl ToArgs) -> Self {
        self.with(|request| {
            args.write_args(request);
        })
    }
}

/// Run a script that changes nothing.
///
/// ```text
/// EVAL_RO script numkeys [key [key ...]] [arg [arg ...]]
/// ```
///
/// Since 7.0.0. ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/eval_ro/) and [Valkey](https://valkey.io/commands/eval_ro/).
pub fn eval_ro(script: impl ToArg, keys: impl ToArgs) -> EvalRo {
    let mut request = cmd("EVAL_RO");
    script.write_args(&mut request);
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    EvalRo::new(request, place)
}

builder! {
    /// A request of [`eval_ro()`] and its options.
    EvalRo, Reply
}

impl<T, S> EvalRo<T, S> {
    /// `arg [arg ...]`.
    pub fn arg(self, args: impl ToArgs) -> Self {
        self.with(|request| {
            args.write_args(request);
        })
    }
}

/// Run a script by the hash of its text.
///
/// ```text
/// EVALSHA sha1 numkeys [key [key ...]] [arg [arg ...]]
/// ```
///
/// Since 2.6.0. ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/evalsha/) and [Valkey](https://valkey.io/commands/evalsha/).
pub fn evalsha(sha1: impl ToArg, keys: impl ToArgs) -> Evalsha {
    let mut request = cmd("EVALSHA");
    sha1.write_args(&mut request);
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    Evalsha::new(request, place)
}

builder! {
    /// A request of [`evalsha()`] and its options.
    Evalsha, Reply
}

impl<T, S> Evalsha<T, S> {
    /// `arg [arg ...]`.
    pub fn arg(self, args: impl ToArgs) -> Self {
        self.with(|request| {
            args.write_args(request);
        })
    }
}

/// Run a script that changes nothing by the hash of its text.
///
/// ```text
/// EVALSHA_RO sha1 numkeys [key [key ...]] [arg [arg ...]]
/// ```
///
/// Since 7.0.0. ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/evalsha_ro/) and [Valkey](https://valkey.io/commands/evalsha_ro/).
pub fn evalsha_ro(sha1: impl ToArg, keys: impl ToArgs) -> EvalshaRo {
    let mut request = cmd("EVALSHA_RO");
    sha1.write_args(&mut request);
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    EvalshaRo::new(request, place)
}

builder! {
    /// A request of [`evalsha_ro()`] and its options.
    EvalshaRo, Reply
}

impl<T, S> EvalshaRo<T, S> {
    /// `arg [arg ...]`.
    pub fn arg(self, args: impl ToArgs) -> Self {
        self.with(|request| {
            args.write_args(request);
        })
    }
}

/// Call a function.
///
/// ```text
/// FCALL function numkeys [key [key ...]] [arg [arg ...]]
/// ```
///
/// Since 7.0.0. ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/fcall/) and [Valkey](https://valkey.io/commands/fcall/).
pub fn fcall(function: impl ToArg, keys: impl ToArgs) -> Fcall {
    let mut request = cmd("FCALL");
    function.write_args(&mut request);
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    Fcall::new(request, place)
}

builder! {
    /// A request of [`fcall()`] and its options.
    Fcall, Reply
}

impl<T, S> Fcall<T, S> {
    /// `arg [arg ...]`.
    pub fn arg(self, args: impl ToArgs) -> Self {
        self.with(|request| {
            args.write_args(request);
        })
    }
}

/// Call a function that changes nothing.
///
/// ```text
/// FCALL_RO function numkeys [key [key ...]] [arg [arg ...]]
/// ```
///
/// Since 7.0.0. ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/fcall_ro/) and [Valkey](https://valkey.io/commands/fcall_ro/).
pub fn fcall_ro(function: impl ToArg, keys: impl ToArgs) -> FcallRo {
    let mut request = cmd("FCALL_RO");
    function.write_args(&mut request);
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    FcallRo::new(request, place)
}

builder! {
    /// A request of [`fcall_ro()`] and its options.
    FcallRo, Reply
}

impl<T, S> FcallRo<T, S> {
    /// `arg [arg ...]`.
    pub fn arg(self, args: impl ToArgs) -> Self {
        self.with(|request| {
            args.write_args(request);
        })
    }
}

/// Remove a library.
///
/// ```text
/// FUNCTION DELETE library-name
/// ```
///
/// Since 7.0.0. Takes O(1). ACL: @write @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/function-delete/) and [Valkey](https://valkey.io/commands/function-delete/).
pub fn function_delete(library_name: impl ToArg) -> Typed<()> {
    let mut request = cmd("FUNCTION DELETE");
    library_name.write_args(&mut request);
    Typed::new(request)
}

/// Serialise all libraries.
///
/// ```text
/// FUNCTION DUMP
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/function-dump/) and [Valkey](https://valkey.io/commands/function-dump/).
pub fn function_dump() -> Typed<Bytes> {
    let request = cmd("FUNCTION DUMP");
    Typed::new(request)
}

/// Remove all libraries.
///
/// ```text
/// FUNCTION FLUSH [ASYNC | SYNC]
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @write @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/function-flush/) and [Valkey](https://valkey.io/commands/function-flush/).
pub fn function_flush() -> FunctionFlush {
    let request = cmd("FUNCTION FLUSH");
    let place = request.place();
    FunctionFlush::new(request, place)
}

builder! {
    /// A request of [`function_flush()`] and its options.
    FunctionFlush, ()
}

impl<T, S> FunctionFlush<T, S> {
    /// `ASYNC`.
    pub fn async_(self) -> Self {
        self.with(|request| {
            request.push(b"ASYNC");
        })
    }
    /// `SYNC`.
    pub fn sync(self) -> Self {
        self.with(|request| {
            request.push(b"SYNC");
        })
    }
}

/// Stop the function that is running.
///
/// ```text
/// FUNCTION KILL
/// ```
///
/// Since 7.0.0. Takes O(1). ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/function-kill/) and [Valkey](https://valkey.io/commands/function-kill/).
pub fn function_kill() -> Typed<()> {
    let request = cmd("FUNCTION KILL");
    Typed::new(request)
}

/// Describe the libraries.
///
/// ```text
/// FUNCTION LIST [LIBRARYNAME library-name-pattern] [WITHCODE]
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/function-list/) and [Valkey](https://valkey.io/commands/function-list/).
pub fn function_list() -> FunctionList {
    let request = cmd("FUNCTION LIST");
    let place = request.place();
    FunctionList::new(request, place)
}

builder! {
    /// A request of [`function_list()`] and its options.
    FunctionList, Vec<HashMap<Bytes, Reply>>
}

impl<T, S> FunctionList<T, S> {
    /// `LIBRARYNAME library-name-pattern`.
    pub fn libraryname(self, library_name_pattern: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"LIBRARYNAME");
            library_name_pattern.write_args(request);
        })
    }
    /// `WITHCODE`.
    pub fn withcode(self) -> Self {
        self.with(|request| {
            request.push(b"WITHCODE");
        })
    }
}

/// Load a library from its source.
///
/// ```text
/// FUNCTION LOAD [REPLACE] function-code
/// ```
///
/// Since 7.0.0. Takes O(1). ACL: @write @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/function-load/) and [Valkey](https://valkey.io/commands/function-load/).
pub fn function_load(function_code: impl ToArg) -> FunctionLoad {
    let mut request = cmd("FUNCTION LOAD");
    let place = request.place();
    function_code.write_args(&mut request);
    FunctionLoad::new(request, place)
}

builder! {
    /// A request of [`function_load()`] and its options.
    FunctionLoad, Bytes
}

impl<T, S> FunctionLoad<T, S> {
    /// `REPLACE`.
    pub fn replace(self) -> Self {
        self.with(|request| {
            request.push(b"REPLACE");
        })
    }
}

/// Bring back serialised libraries.
///
/// ```text
/// FUNCTION RESTORE serialized-value [FLUSH | APPEND | REPLACE]
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @write @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/function-restore/) and [Valkey](https://valkey.io/commands/function-restore/).
pub fn function_restore(serialized_value: impl ToArg) -> FunctionRestore {
    let mut request = cmd("FUNCTION RESTORE");
    serialized_value.write_args(&mut request);
    let place = request.place();
    FunctionRestore::new(request, place)
}

builder! {
    /// A request of [`function_restore()`] and its options.
    FunctionRestore, ()
}

impl<T, S> FunctionRestore<T, S> {
    /// `FLUSH`.
    pub fn flush(self) -> Self {
        self.with(|request| {
            request.push(b"FLUSH");
        })
    }
    /// `APPEND`.
    pub fn append(self) -> Self {
        self.with(|request| {
            request.push(b"APPEND");
        })
    }
    /// `REPLACE`.
    pub fn replace(self) -> Self {
        self.with(|request| {
            request.push(b"REPLACE");
        })
    }
}

/// Describe the function that is running and the engines.
///
/// ```text
/// FUNCTION STATS
/// ```
///
/// Since 7.0.0. Takes O(1). ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/function-stats/) and [Valkey](https://valkey.io/commands/function-stats/).
pub fn function_stats() -> Typed<HashMap<Bytes, Reply>> {
    let request = cmd("FUNCTION STATS");
    Typed::new(request)
}

/// Tell which scripts are in the cache.
///
/// ```text
/// SCRIPT EXISTS sha1 [sha1 ...]
/// ```
///
/// Since 2.6.0. Takes O(N). ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/script-exists/) and [Valkey](https://valkey.io/commands/script-exists/).
pub fn script_exists(sha1s: impl ToArgs) -> Typed<Vec<bool>> {
    let mut request = cmd("SCRIPT EXISTS");
    sha1s.write_args(&mut request);
    Typed::new(request)
}

/// Empty the cache of scripts.
///
/// ```text
/// SCRIPT FLUSH [ASYNC | SYNC]
/// ```
///
/// Since 2.6.0. Takes O(N). ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/script-flush/) and [Valkey](https://valkey.io/commands/script-flush/).
pub fn script_flush() -> ScriptFlush {
    let request = cmd("SCRIPT FLUSH");
    let place = request.place();
    ScriptFlush::new(request, place)
}

builder! {
    /// A request of [`script_flush()`] and its options.
    ScriptFlush, ()
}

impl<T, S> ScriptFlush<T, S> {
    /// `ASYNC`.
    pub fn async_(self) -> Self {
        self.with(|request| {
            request.push(b"ASYNC");
        })
    }
    /// `SYNC`.
    pub fn sync(self) -> Self {
        self.with(|request| {
            request.push(b"SYNC");
        })
    }
}

/// Stop the script that is running.
///
/// ```text
/// SCRIPT KILL
/// ```
///
/// Since 2.6.0. Takes O(1). ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/script-kill/) and [Valkey](https://valkey.io/commands/script-kill/).
pub fn script_kill() -> Typed<()> {
    let request = cmd("SCRIPT KILL");
    Typed::new(request)
}

/// Put a script into the cache.
///
/// ```text
/// SCRIPT LOAD script
/// ```
///
/// Since 2.6.0. Takes O(N). ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/script-load/) and [Valkey](https://valkey.io/commands/script-load/).
pub fn script_load(script: impl ToArg) -> Typed<Bytes> {
    let mut request = cmd("SCRIPT LOAD");
    script.write_args(&mut request);
    Typed::new(request)
}

/// Tell the text of a script in the cache (Valkey).
///
/// ```text
/// SCRIPT SHOW sha1
/// ```
///
/// Since 8.0.0. Takes O(1). ACL: @slow @scripting.
/// See [Redis](https://redis.io/docs/latest/commands/script-show/) and [Valkey](https://valkey.io/commands/script-show/).
pub fn script_show(sha1: impl ToArg) -> Typed<Bytes> {
    let mut request = cmd("SCRIPT SHOW");
    sha1.write_args(&mut request);
    Typed::new(request)
}

/// Commands of the group scripting.
impl crate::Client {
    /// Run a script.
    ///
    /// `EVAL script numkeys [key [key ...]] [arg [arg ...]]`: see [`eval()`].
    pub fn eval(&self, script: impl ToArg, keys: impl ToArgs) -> Eval<Reply, &Self> {
        eval(script, keys).on(self)
    }
    /// Run a script that changes nothing.
    ///
    /// `EVAL_RO script numkeys [key [key ...]] [arg [arg ...]]`: see [`eval_ro()`].
    pub fn eval_ro(&self, script: impl ToArg, keys: impl ToArgs) -> EvalRo<Reply, &Self> {
        eval_ro(script, keys).on(self)
    }
    /// Run a script by the hash of its text.
    ///
    /// `EVALSHA sha1 numkeys [key [key ...]] [arg [arg ...]]`: see [`evalsha()`].
    pub fn evalsha(&self, sha1: impl ToArg, keys: impl ToArgs) -> Evalsha<Reply, &Self> {
        evalsha(sha1, keys).on(self)
    }
    /// Run a script that changes nothing by the hash of its text.
    ///
    /// `EVALSHA_RO sha1 numkeys [key [key ...]] [arg [arg ...]]`: see [`evalsha_ro()`].
    pub fn evalsha_ro(&self, sha1: impl ToArg, keys: impl ToArgs) -> EvalshaRo<Reply, &Self> {
        evalsha_ro(sha1, keys).on(self)
    }
    /// Call a function.
    ///
    /// `FCALL function numkeys [key [key ...]] [arg [arg ...]]`: see [`fcall()`].
    pub fn fcall(&self, function: impl ToArg, keys: impl ToArgs) -> Fcall<Reply, &Self> {
        fcall(function, keys).on(self)
    }
    /// Call a function that changes nothing.
    ///
    /// `FCALL_RO function numkeys [key [key ...]] [arg [arg ...]]`: see [`fcall_ro()`].
    pub fn fcall_ro(&self, function: impl ToArg, keys: impl ToArgs) -> FcallRo<Reply, &Self> {
        fcall_ro(function, keys).on(self)
    }
    /// Remove a library.
    ///
    /// `FUNCTION DELETE library-name`: see [`function_delete()`].
    pub fn function_delete(&self, library_name: impl ToArg) -> Typed<(), &Self> {
        function_delete(library_name).on(self)
    }
    /// Serialise all libraries.
    ///
    /// `FUNCTION DUMP`: see [`function_dump()`].
    pub fn function_dump(&self) -> Typed<Bytes, &Self> {
        function_dump().on(self)
    }
    /// Remove all libraries.
    ///
    /// `FUNCTION FLUSH [ASYNC | SYNC]`: see [`function_flush()`].
    pub fn function_flush(&self) -> FunctionFlush<(), &Self> {
        function_flush().on(self)
    }
    /// Stop the function that is running.
    ///
    /// `FUNCTION KILL`: see [`function_kill()`].
    pub fn function_kill(&self) -> Typed<(), &Self> {
        function_kill().on(self)
    }
    /// Describe the libraries.
    ///
    /// `FUNCTION LIST [LIBRARYNAME library-name-pattern] [WITHCODE]`: see [`function_list()`].
    pub fn function_list(&self) -> FunctionList<Vec<HashMap<Bytes, Reply>>, &Self> {
        function_list().on(self)
    }
    /// Load a library from its source.
    ///
    /// `FUNCTION LOAD [REPLACE] function-code`: see [`function_load()`].
    pub fn function_load(&self, function_code: impl ToArg) -> FunctionLoad<Bytes, &Self> {
        function_load(function_code).on(self)
    }
    /// Bring back serialised libraries.
    ///
    /// `FUNCTION RESTORE serialized-value [FLUSH | APPEND | REPLACE]`: see [`function_restore()`].
    pub fn function_restore(&self, serialized_value: impl ToArg) -> FunctionRestore<(), &Self> {
        function_restore(serialized_value).on(self)
    }
    /// Describe the function that is running and the engines.
    ///
    /// `FUNCTION STATS`: see [`function_stats()`].
    pub fn function_stats(&self) -> Typed<HashMap<Bytes, Reply>, &Self> {
        function_stats().on(self)
    }
    /// Tell which scripts are in the cache.
    ///
    /// `SCRIPT EXISTS sha1 [sha1 ...]`: see [`script_exists()`].
    pub fn script_exists(&self, sha1s: impl ToArgs) -> Typed<Vec<bool>, &Self> {
        script_exists(sha1s).on(self)
    }
    /// Empty the cache of scripts.
    ///
    /// `SCRIPT FLUSH [ASYNC | SYNC]`: see [`script_flush()`].
    pub fn script_flush(&self) -> ScriptFlush<(), &Self> {
        script_flush().on(self)
    }
    /// Stop the script that is running.
    ///
    /// `SCRIPT KILL`: see [`script_kill()`].
    pub fn script_kill(&self) -> Typed<(), &Self> {
        script_kill().on(self)
    }
    /// Put a script into the cache.
    ///
    /// `SCRIPT LOAD script`: see [`script_load()`].
    pub fn script_load(&self, script: impl ToArg) -> Typed<Bytes, &Self> {
        script_load(script).on(self)
    }
    /// Tell the text of a script in the cache (Valkey).
    ///
    /// `SCRIPT SHOW sha1`: see [`script_show()`].
    pub fn script_show(&self, sha1: impl ToArg) -> Typed<Bytes, &Self> {
        script_show(sha1).on(self)
    }
}
