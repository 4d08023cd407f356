-- What of a script's world is written in Lua: protected tables, and calls that turn what the engine raises into plain values.
--
-- Shared tables are unreachable for scripts. What they see of one is a userdata that reads through to it: no function of the
-- library can write into a userdata, whatever it is given.
local engine, names = ...
local raw_type, raw_next, raw_pairs, raw_rawget, raw_rawset = type, next, pairs, rawget, rawset
local raw_setmetatable, raw_getmetatable, raw_pcall, raw_xpcall = setmetatable, getmetatable, pcall, xpcall
local raw_select, newproxy = select, newproxy
local raw_create, raw_resume, raw_wrap = coroutine.create, coroutine.resume, coroutine.wrap
local unwrap, bad, refuse, absent, handle, note_coroutine =
    engine.unwrap, engine.bad, engine.refuse, engine.absent, engine.handle, engine.note_coroutine

-- Protected tables by what stands for them.
local real = {}

local function protect(table)
    local stand_in = newproxy(true)
    local meta = raw_getmetatable(stand_in)
    meta.__index = table
    meta.__newindex = refuse
    meta.__metatable = false
    real[stand_in] = table
    return stand_in
end

-- What every script sees. A name that is not there is an error.
local base = {}
for _, name in ipairs(names) do
    base[name] = _G[name]
end
raw_setmetatable(base, { __index = absent })

function base.type(...)
    if raw_select('#', ...) == 0 then bad(1, 'value expected') end
    local value = ...
    return real[value] and 'table' or raw_type(value)
end

function base.next(table, key)
    if real[table] then return raw_next(real[table], key) end
    if raw_type(table) ~= 'table' then bad(1, 'table', table) end
    return raw_next(table, key)
end

function base.pairs(...)
    local table = ...
    if real[table] then
        local copy = {}
        for key, value in raw_pairs(real[table]) do copy[key] = value end
        return raw_next, copy, nil
    end
    if raw_type(table) ~= 'table' then bad(1, 'table', ...) end
    return raw_next, table, nil
end

function base.rawget(...)
    local table, key = ...
    if real[table] then return raw_rawget(real[table], key) end
    if raw_type(table) ~= 'table' then bad(1, 'table', ...) end
    return raw_rawget(table, key)
end

function base.rawset(...)
    local table, key, value = ...
    if real[table] then engine.refuse_call() end
    if raw_type(table) ~= 'table' then bad(1, 'table', ...) end
    return raw_rawset(table, key, value)
end

function base.setmetatable(...)
    local table, meta = ...
    if real[table] then engine.refuse_call() end
    if raw_type(table) ~= 'table' then bad(1, 'table', ...) end
    if meta ~= nil and raw_type(meta) ~= 'table' then bad(2, 'nil or table expected') end
    local own = raw_getmetatable(table)
    if own == nil or raw_type(own) == 'table' and raw_rawget(own, '__metatable') == nil then
        return raw_setmetatable(table, meta)
    end
    engine.fail('cannot change a protected metatable')
end

-- The metatables of strings and of the globals are shared by all scripts.
local of_strings
local of_globals = protect({ __index = absent })
local is_globals = {}

function base.getmetatable(...)
    if raw_select('#', ...) == 0 then bad(1, 'value expected') end
    local value = ...
    if raw_type(value) == 'string' then return of_strings end
    if real[value] then
        return is_globals[value] and of_globals or nil
    end
    return raw_getmetatable(value)
end

-- What is raised by the engine is a value of its own: scripts see what it stands for. A script that is being stopped gets
-- no further: unwrap raises again.
local function outcome(ok, ...)
    if ok then return true, ... end
    return false, unwrap((...))
end

local function called(ok, ...)
    if ok then return true, ... end
    local err = unwrap((...))
    if raw_type(err) == 'table' then
        local text = err.err
        if raw_type(text) == 'string' or raw_type(text) == 'number' then return false, text end
        return false, err, text
    end
    return false, err
end

function base.pcall(...)
    if raw_select('#', ...) == 0 then bad(1, 'value expected') end
    return called(raw_pcall(...))
end

function base.xpcall(...)
    if raw_select('#', ...) < 2 then bad(2, 'value expected') end
    local f, handler = ...
    return outcome(raw_xpcall(f, function(err)
        return handler(unwrap(err))
    end))
end

local coroutines = {}
for name, value in raw_pairs(coroutine) do coroutines[name] = value end

function coroutines.create(...)
    note_coroutine(...)
    return raw_create(...)
end

function coroutines.wrap(...)
    note_coroutine(...)
    return raw_wrap(...)
end

function coroutines.resume(...)
    if raw_type((...)) ~= 'thread' then bad(1, 'coroutine expected') end
    return outcome(raw_resume(...))
end

base.coroutine = coroutines

for name, value in raw_pairs(engine.globals) do base[name] = value end

local raw_unpack, range = unpack, base.unpack
function base.unpack(...)
    local first, last = range(...)
    return raw_unpack((...), first, last)
end
for _, name in ipairs({ 'string', 'table', 'math' }) do
    local library = {}
    for key, value in raw_pairs(_G[name]) do library[key] = value end
    for key, value in raw_pairs(engine[name] or {}) do library[key] = value end
    base[name] = library
end

-- Lua's own moves elements in C as far as the place says, which may be far below any of a table.
local MOVED_MAX = 10000
local raw_insert, insert_place = table.insert, engine.insert_place

function base.table.insert(...)
    local count = raw_select('#', ...)
    if count ~= 3 then
        if raw_type((...)) ~= 'table' then bad(1, 'table', ...) end
        if count ~= 2 then engine.fail("wrong number of arguments to 'insert'") end
        return raw_insert(...)
    end
    local place, last = insert_place(...)
    if last - place <= MOVED_MAX then return raw_insert(...) end
    local table, _, value = ...
    for i = last, place + 1, -1 do raw_rawset(table, i, raw_rawget(table, i - 1)) end
    raw_rawset(table, place, value)
end

-- Methods of strings are found in the protected library.
local strings = raw_getmetatable('')
strings.__index = base.string

for name, value in raw_pairs(base) do
    if raw_type(value) == 'table' then base[name] = protect(value) end
end
of_strings = protect({ __index = base.string })

-- The globals of one kind of scripts, and the environment of their functions: an empty table that reads through.
local function world(own)
    local globals = raw_setmetatable({}, { __index = absent })
    for name, value in raw_pairs(base) do globals[name] = value end
    for name, value in raw_pairs(own) do
        if raw_type(value) == 'table' then value = protect(value) end
        globals[name] = value
    end
    -- Valkey's name for it.
    globals.server = globals.redis
    globals._G = protect(globals)
    is_globals[globals._G] = true
    return globals, raw_setmetatable({}, { __index = globals, __newindex = refuse })
end

local of_eval, eval_world = world({ redis = engine.redis, os = engine.os, __redis__err__handler = handle })

-- Tables are made here: for the engine each element would be a protected call of its own.
local splits = {
    function(a, ...) return { a }, { ... } end,
    function(a, b, ...) return { a, b }, { ... } end,
    function(a, b, c, ...) return { a, b, c }, { ... } end,
    function(a, b, c, d, ...) return { a, b, c, d }, { ... } end,
}

local function split(keys_count, ...)
    local few = splits[keys_count]
    if few then return few(...) end
    if keys_count < 0 then return ... end
    local count = raw_select('#', ...)
    if count == 0 then return {}, {} end
    if keys_count == count then return { ... }, {} end
    if keys_count == 0 then return {}, { ... } end
    local all, keys, argv = { ... }, {}, {}
    for i = 1, keys_count do keys[i] = all[i] end
    for i = keys_count + 1, count do argv[i - keys_count] = all[i] end
    return keys, argv
end

local function run(f, keys_count, ...)
    of_eval.KEYS, of_eval.ARGV = split(keys_count, ...)
    return raw_xpcall(f, handle)
end

-- The same for so many keys, without another call that passes all arguments on.
local runs = {
    function(f, ...)
        of_eval.KEYS, of_eval.ARGV = {}, { ... }
        return raw_xpcall(f, handle)
    end,
    function(f, a, ...)
        of_eval.KEYS, of_eval.ARGV = { a }, { ... }
        return raw_xpcall(f, handle)
    end,
    function(f, a, b, ...)
        of_eval.KEYS, of_eval.ARGV = { a, b }, { ... }
        return raw_xpcall(f, handle)
    end,
}

-- A library is loaded in a world that has nothing but a smaller `redis`; its functions then run in the whole one.
local of_functions, function_world = world({ redis = engine.redis, os = engine.os, __redis__err__handler = handle })
local meta_of_functions = raw_getmetatable(function_world)
local in_library = protect(raw_setmetatable(engine.library, { __index = absent }))
local of_load = raw_setmetatable({ redis = in_library, server = in_library }, { __index = absent })

local function load_library(f)
    meta_of_functions.__index = of_load
    local ok, err = raw_xpcall(f, handle)
    meta_of_functions.__index = of_functions
    return ok, err
end

-- What is to be called: xpcall passes no arguments on, and a function calls no other.
local called_function, called_keys, called_argv

local function call_it()
    local f, keys, argv = called_function, called_keys, called_argv
    called_function, called_keys, called_argv = nil, nil, nil
    return f(keys, argv)
end

local function call(f, keys_count, ...)
    called_function = f
    called_keys, called_argv = split(keys_count, ...)
    return raw_xpcall(call_it, handle)
end

local calls = {
    function(f, ...)
        called_function, called_keys, called_argv = f, {}, { ... }
        return raw_xpcall(call_it, handle)
    end,
    function(f, a, ...)
        called_function, called_keys, called_argv = f, { a }, { ... }
        return raw_xpcall(call_it, handle)
    end,
    function(f, a, b, ...)
        called_function, called_keys, called_argv = f, { a, b }, { ... }
        return raw_xpcall(call_it, handle)
    end,
}

return eval_world, run, runs, function_world, load_library, call, calls, real
