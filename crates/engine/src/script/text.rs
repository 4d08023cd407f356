//! The texts of errors about scripts, byte for byte as Redis 7.0.15 writes them, and about what there is in no Redis.

pub(super) const NO_ARGUMENTS: &str = "ERR Please specify at least one argument for this redis lib call";
pub(super) const BAD_ARGUMENTS: &str = "ERR Lua redis lib command arguments must be strings or integers";
pub(super) const LARGE_ARGUMENTS: &str = "ERR Lua redis lib command arguments are too large";
pub(super) const UNKNOWN_COMMAND: &str = "ERR Unknown Redis command called from script";
pub(super) const WRONG_ARITY: &str = "ERR Wrong number of args calling Redis command from script";
pub(super) const NOT_FROM_SCRIPT: &str = "ERR This Redis command is not allowed from script";
pub(super) const KEY_ELSEWHERE: &str = "CROSSSLOT Script attempted to access a key of another engine of this server";
pub(super) const CHANNEL_ELSEWHERE: &str =
    "CROSSSLOT Script attempted to publish to a channel of another engine of this server";
pub(super) const ALL_ENGINES: &str = "CROSSSLOT Script attempted to access what is about all engines of this server";
pub(super) const UNNAMED_KEYS: &str =
    "CROSSSLOT Script attempted to access keys by a pattern, which may be of another engine of this server";
pub(super) const READ_ONLY: &str = "ERR Write commands are not allowed from read-only scripts.";
pub(super) const NEGATIVE_KEYS: &str = "ERR Number of keys can't be negative";
pub(super) const TOO_MANY_KEYS: &str = "ERR Number of keys can't be greater than number of args";
pub(super) const FLUSH_OPTION: &str = "ERR SCRIPT FLUSH only support SYNC|ASYNC option";
pub(super) const DEBUG_OPTION: &str = "ERR Use SCRIPT DEBUG YES/SYNC/NO";
pub(super) const ABORTED: &str = "ERR script aborted for user request";
pub(super) const DESERTED: &str = "ERR timeout during Lua debugging with client closing connection";
pub(super) const TOO_LONG_TO_DEBUG: &str = "ERR the script is too long to be debugged";
pub(super) const TOO_MANY_REGISTERS: &str =
    "ERR the script cannot be debugged: one of its functions has too many variables or arguments at once";
pub(super) const NOT_BUSY: &str = "NOTBUSY No scripts in execution right now.";
pub(super) const UNKILLABLE: &str = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can \
                                     either wait the script termination or kill the server in a hard way using the SHUTDOWN \
                                     NOSAVE command.";
pub(super) const LOAD_TIMEOUT: &str = "ERR FUNCTION LOAD timeout";
pub(super) const NO_FUNCTIONS: &str = "ERR No functions registered";
pub(super) const FUNCTION_NOT_FOUND: &str = "ERR Function not found";
pub(super) const LIBRARY_NOT_FOUND: &str = "ERR Library not found";
pub(super) const BAD_KEY_COUNT: &str = "ERR Bad number of keys provided";
pub(super) const FUNCTION_FLUSH_OPTION: &str = "ERR FUNCTION FLUSH only supports SYNC|ASYNC option";
pub(super) const RESTORE_POLICY: &str =
    "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.";
pub(super) const NOT_LIBRARIES: &str = "ERR given type is not a function";
pub(super) const NO_LIBRARY_NAME: &str = "ERR library name argument was not given";
pub(super) const KILLED: &str = "ERR Script killed by user with SCRIPT KILL...";
pub(super) const STACK_LIMIT: &[u8] = b"ERR reached lua stack limit";
pub(super) const NO_WRITES_NEEDED: &str = "ERR Can not execute a script with write flag using *_ro command.";
pub(super) const NO_MEMORY: &str = "ERR not enough memory for scripts";
pub(super) const OOM_NOT_ALLOWED: &str =
    "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'";
pub(super) const NO_TEXT: &[u8] = b"ERR the script failed with a table that has no err";
pub(super) const READ_ONLY_TABLE: &str = "Attempt to modify a readonly table";
