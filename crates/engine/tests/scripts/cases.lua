-- Scripts, one a line: each is run by redis-server and by the engine, in both dialects. `\n` behind `#!` is the end of a line.
return math.random(1000)
return math.random(1000)
error(nil)
error(true)
local function f() return f()+1 end return f()
foo bar
return 'a
return {1,2,3.5,nil,4}
return {ok='x'}
return {err='x'}
return redis.call('subscribe','x')
return redis.call()
return redis.call({})
return redis.call('set','k',1.5)
return redis.call('set','k',1e20) and redis.call('get','k')
return redis.call('set','k',12345678901234567890) and redis.call('get','k')
return redis.call('set','k',nil)
redis.pcall({})
return redis.error_reply('x')
return redis.error_reply()
return redis.error_reply('-x y')
return redis.error_reply('')
return redis.error_reply('x\ny')
return redis.status_reply()
return redis.status_reply(1)
return redis.sha1hex()
return redis.sha1hex('a')
return redis.setresp(5)
return redis.setresp()
return redis.log(1)
return redis.log(9,'x')
return redis.log('a','x')
return redis.set_repl(99)
return redis.set_repl()
return redis.acl_check_cmd("nosuch")
return redis.acl_check_cmd()
return redis.acl_check_cmd({})
return redis.replicate_commands()
return redis.breakpoint()
return redis.debug('x')
math.randomseed(5) return tostring(math.random()) .. ' ' .. tostring(math.random(100))
return math.random(0)
return math.random(5,3)
return math.random(1,2,3)
return load('return 1')()
return loadstring('return ')()
return {loadstring('return x y')}
return loadstring(string.dump(function() return 1 end))
return {loadstring(string.dump(function() return 1 end))}
return {pcall(loadstring, nil)}
return {pcall(load, 'return 1')}
return {pcall(redis.call, 'nosuch')}
return select(2, pcall(redis.call, 'nosuch')).err
local t={} for k,v in pairs(select(2, pcall(redis.call, 'nosuch'))) do t[#t+1]=k..'='..tostring(v) end table.sort(t) return t
local t={} for k,v in pairs(redis.pcall('nosuch')) do t[#t+1]=k..'='..tostring(v) end table.sort(t) return t
local t={} for k,v in pairs(redis.pcall('lpush','s')) do t[#t+1]=k..'='..tostring(v) end table.sort(t) return t
redis.call('set','s','x') local t={} for k,v in pairs(redis.pcall('lpush','s','x')) do t[#t+1]=k..'='..tostring(v) end table.sort(t) return t
return {pcall(error,{a=1})}
return {pcall(error)}
return pcall(nil)
return xpcall(function() error('x') end, function(e) return e end)
return {xpcall(function() error('x') end, function(e) return e end)}
return {xpcall(function() redis.call('nosuch') end, function(e) return e.err end)}
return redis.call('eval','return 1',0)
return redis.call('multi')
return redis.call('blpop','nosuch',0)
return redis.call('xread','block',0,'streams','x','$')
return redis.call('hello')
return redis.call('client','id')
return redis.call('config','get','maxmemory')
return redis.call('select',3)
return redis.call('function','list')
return redis.call('time') and 1
return true
return false
return nil
return
return 3.99
return -3.99
return 1e300
return 0/0
return -0/0
return 1/0
return ''
return function() end
return coroutine.create(function() end)
return {1,{2,{3,'x'}},false,5}
return {double=3.14}
return {double='x'}
return {map={a=1}}
return {set={a=true,b=true}}
return {map=1}
return {big_number='123'}
return {big_number=123}
return {verbatim_string={string='x',format='txt'}}
return {verbatim_string={string='x',format='abcdef'}}
return {verbatim_string={string='x'}}
return {verbatim_string='x'}
return {ok=1}
return {err=1}
return {err={}}
return {err='-x y'}
return {err='x\r\ny'}
return {ok='x\r\ny'}
return setmetatable({},{__index=function() error('no') end})
return setmetatable({},{__index=function(t,k) if k==1 then return 5 end end})
local t={} t[1]=t return 1
redis.setresp(3) return redis.call('hgetall','nosuch')
redis.call('hset','h','a',1) redis.setresp(3) return redis.call('hgetall','h')
redis.call('hset','h','a',1) return redis.call('hgetall','h')
redis.call('zadd','z',1.5,'m') redis.setresp(3) return redis.call('zscore','z','m')
redis.call('zadd','z',1.5,'m') redis.setresp(3) return redis.call('zrange','z',0,-1,'withscores')
redis.call('sadd','ss','m') redis.setresp(3) return redis.call('smembers','ss')
redis.setresp(3) return redis.call('get','nosuch')
redis.setresp(3) return redis.call('get','nosuch') == nil
redis.setresp(3) return redis.call('sismember','ss','m')
return redis.call('get','nosuch') == false
redis.setresp(3) return true
redis.setresp(3) return false
redis.setresp(3) return {true,false,nil,1}
redis.setresp(3) return redis.call('debug','protocol','true')
redis.setresp(3) return redis.call('debug','protocol','false')
redis.setresp(3) return redis.call('debug','protocol','null')
redis.setresp(3) return redis.call('debug','protocol','double')
redis.setresp(3) return redis.call('debug','protocol','bignum')
redis.setresp(3) return redis.call('debug','protocol','map')
redis.setresp(3) return redis.call('debug','protocol','set')
redis.setresp(3) return redis.call('debug','protocol','verbatim')
redis.setresp(3) return redis.call('debug','protocol','attrib')
return redis.call('ping')
return redis.call('set','a','b').ok
return _VERSION
return type(_G)
return type(redis)
return next({})
local t={} for k in pairs(redis) do t[#t+1]=k end table.sort(t) return t
return rawget(redis,'REDIS_VERSION')
return rawget(_G,'nosuch')
return tostring(rawequal(redis,_G.redis))
return KEYS.x
KEYS[1]='x' return KEYS
return {#KEYS,#ARGV}
KEYS=nil
local x = y
local x = nil; x.y=1
local x = nil; x()
return 1 + {}
return 'a' .. {}
return 1 < 'a'
return #5
for i=1,'x' do end
return ("x"):rep(3)
return ("x"):bad()
return string.format('%d', 'x')
return string.format('%y', 1)
return string.rep()
return ipairs()
return ipairs(nil)
return pairs(nil)
return tonumber('0x10')
return tonumber('10',2)
return tonumber('1e1')
return unpack({1,2,3})
return {unpack({1,2,3},2)}
return {unpack({1,2,3},-1,1)}
return {unpack({},1,10000)}
return {unpack({},0,2147483647)}
return {unpack({},-2147483648,2147483647)}
return {unpack({},1,1e15)}
return unpack(nil)
return string.find('abc','b',1,true)
return {string.find('abc','(b)(c)')}
return {string.find('a.c','.',1,true)}
return {string.match('key=val','(%w+)=(%w+)')}
return {string.gsub('hello world','o','0')}
return {string.gsub('hello','l',{l='L'})}
return {string.gsub('hello','(l)(.)',function(a,b) return b..a end)}
return {string.gsub('abc','%w','%0%0')}
return {string.gsub('abc','','-')}
return {string.gsub('abc','b','%2')}
return string.find('a','[a')
return string.find('a','%')
return string.find('a','(a')
return string.find('a','a)')
return string.find('a','%f')
return string.find('a','%b')
return {string.find('THE (quick) fox','%((%a+)%)')}
return {string.find('x(a(b)c)y','%b()')}
return {string.gsub('THE (quick) fox','%f[%a]%a+','W')}
local t={} for w in string.gmatch('one two','%a+') do t[#t+1]=w end return t
local t={} for k,v in string.gmatch('a=1, b=2','(%w+)=(%w+)') do t[#t+1]=k..v end return t
return {string.gsub('abc','b',1)}
return {string.gsub('abc','b',true)}
return {string.gsub('abc','b',function() return {} end)}
return {string.byte('abc',1,-1)}
return string.char(256)
return string.sub('hello',2,-2)
return table.concat({1,2,'x'},',')
return table.concat({1,{},3})
local t={3,1,2} table.sort(t) return t
local t={3,1,2} table.sort(t,function(a,b) return a>b end) return t
table.sort({1,'x'})
table.sort({3,1,2,5,4,7,8,9},function(a,b) return true end)
return table.getn({1,2})
return table.insert({1},1,2,3)
return coroutine.wrap(function() error('in co') end)()
return {coroutine.resume(coroutine.create(function() error('in co') end))}
return {coroutine.resume(coroutine.create(function() redis.call('nosuch') end))}
coroutine.yield(1)
return coroutine.status(coroutine.create(function() end))
return ...
goto x
return 0x10
return "\65\066"
#!lua\nreturn 1
--[[ x ]] return 1
return 1;
return 1 return 2
end return 1
end function f() return 1
return redis.call('GET', KEYS[1], 'x')
return redis.pcall('GET')
return redis.call('sort','nosuch')
assert(false)
assert(false,'msg')
assert(nil,{err='x'})
return assert(1,2)
error('msg',0)
error('msg',2)
error({err='My Err'})
error({err='-My Err'})
local ok,e = pcall(error,{err='My'}) return e
return redis.call('incr','notint')
redis.call('set','notint','x') return redis.call('incr','notint')
redis.call('set','notint','x') local r = redis.pcall('incr','notint') return r
redis.call('set','notint','x') local r = redis.pcall('incr','notint') return r.err
redis.call('set','notint','x') return {1,redis.pcall('incr','notint')}
return {1,{err='in'},2}
return {1,{ok='in'},2}
return cjson.encode({1,2,3})
return cjson.encode({})
return cjson.encode({a=1})
return cjson.encode({[1]=1,[3]=3})
return cjson.encode({[1]=1,[30]=3})
return cjson.encode({[1]=1,[100]=3})
return cjson.encode('a/b"\\\n\t\127\1é')
return cjson.encode(1.5)
return cjson.encode(1e100)
return cjson.encode(123456789012345678)
return cjson.encode(0.1)
return cjson.encode(-0.0)
return cjson.encode(1/0)
return cjson.encode(0/0)
return cjson.encode(true)
return cjson.encode(nil)
return cjson.encode(cjson.null)
return cjson.encode()
return cjson.encode(1,2)
return cjson.encode(function() end)
return cjson.encode({[{}]=1})
return cjson.encode({[true]=1})
return cjson.encode({[1.5]='x'})
return cjson.encode({nested={1,{2,{3}}}})
local t={} t[1]=t return cjson.encode(t)
local t={} for i=1,1001 do t={t} end return cjson.encode(t)
local t={} for i=1,999 do t={t} end return #cjson.encode(t)
return cjson.decode('[1,2,3]')
return cjson.decode('{"a":1}').a
return cjson.decode('"x"')
return cjson.decode('1.5') * 2
return cjson.decode('null') == cjson.null
return type(cjson.decode('null'))
return cjson.decode('true')
return cjson.decode('')
return cjson.decode('{')
return cjson.decode('{"a"')
return cjson.decode('{"a":')
return cjson.decode('{"a":1')
return cjson.decode('{"a":1,}')
return cjson.decode('{a:1}')
return cjson.decode('[1')
return cjson.decode('[1,')
return cjson.decode('[1,]')
return cjson.decode('[,]')
return cjson.decode('nope')
return cjson.decode('truex')
return cjson.decode('"abc')
return cjson.decode('"\\x"')
return cjson.decode('"\\u00e9"')
return cjson.decode('"\\ud834\\udd1e"')
return cjson.decode('"\\ud834"')
return cjson.decode('"\\udd1e"')
return cjson.decode('"\\u00zz"')
return cjson.decode('1 2')
return cjson.decode('-')
return cjson.decode('+1')
return cjson.decode('.5')
return cjson.decode('-.5')
return cjson.decode('01')
return cjson.decode('0x1F')
return cjson.decode('1e5')
return cjson.decode('1e')
return cjson.decode('inf') > 5
return cjson.decode('-Infinity') < 5
return tostring(cjson.decode('nan'))
return cjson.decode('[nan]') ~= nil
return cjson.decode(string.rep('[',1001)..string.rep(']',1001))
return cjson.decode(string.rep('[',1000)..string.rep(']',1000)) ~= nil
return cjson.decode('"a\0b"')
return cjson.decode('\0\0')
return cjson.decode('a\0')
return cjson.decode({})
return cjson.decode()
return cjson.decode('1','2')
return cjson.decode('"a\tb"')
return cjson.decode('[1, 2 ,3 ]  ')
return cjson._VERSION
return cjson.encode_max_depth()
return cjson.encode_max_depth(0)
return cjson.encode_max_depth('x')
return {cjson.encode_sparse_array()}
return cjson.encode_number_precision()
return cjson.encode_number_precision(15)
return cjson.encode_invalid_numbers()
return cjson.decode_invalid_numbers()
return cjson.encode_keep_buffer()
return cjson.encode_sparse_array('x')
cjson.encode = 1
return cmsgpack.pack({1,2,3})
return cmsgpack.pack({})
return cmsgpack.pack({a=1})
return cmsgpack.pack(1,'a',true,false,nil)
return cmsgpack.pack(nil)
return cmsgpack.pack()
return cmsgpack.pack(1.5)
return cmsgpack.pack(1.1)
return cmsgpack.pack(-1,-32,-33,-128,-129,-32768,-32769,-2147483648,-2147483649)
return cmsgpack.pack(0,127,128,255,256,65535,65536,4294967295,4294967296,9007199254740992)
return cmsgpack.pack(string.rep('x',31), string.rep('x',32), string.rep('x',256))
return cmsgpack.pack(string.rep('x',65536)):sub(1,10)
return cmsgpack.pack(1/0)
return cmsgpack.pack(function() end)
return cmsgpack.pack({[1]=1,[3]=3})
local t={} for i=1,20 do t={t} end return cmsgpack.pack(t)
return {cmsgpack.unpack(cmsgpack.pack({1,2,{a='b'}}))}
return {cmsgpack.unpack(cmsgpack.pack(1,'x',true))}
return {cmsgpack.unpack('\147\1\2')}
return {cmsgpack.unpack('\193')}
return {cmsgpack.unpack('')}
return {cmsgpack.unpack()}
return {cmsgpack.unpack_one(cmsgpack.pack(1,2))}
return {cmsgpack.unpack_one(cmsgpack.pack(1,2),1)}
return {cmsgpack.unpack_one(cmsgpack.pack(1,2),5)}
return {cmsgpack.unpack_limit(cmsgpack.pack(1,2,3),2)}
return {cmsgpack.unpack_limit(cmsgpack.pack(1,2,3),2,1)}
return {cmsgpack.unpack_limit('\1',-1)}
return {cmsgpack.unpack_limit('\1',1,-1)}
return {cmsgpack.unpack_limit('\1')}
return tostring(cmsgpack.unpack('\203\63\248\0\0\0\0\0\0'))
return tostring(cmsgpack.unpack('\202\63\192\0\0'))
return tostring(cmsgpack.unpack('\207\255\255\255\255\255\255\255\255'))
return cmsgpack._NAME .. cmsgpack._VERSION .. cmsgpack._COPYRIGHT .. cmsgpack._DESCRIPTION
return struct.pack('HH', 1, 2)
return struct.pack('>HH', 1, 2)
return struct.pack('bBhHlLT', -1, 255, -2, 65535, -3, 4, 5)
return struct.pack('i3I5', -2, 7)
return struct.pack('>i3', -2)
return struct.pack('fd', 1.5, 2.5)
return struct.pack('>fd', 1.5, 2.5)
return struct.pack('s', 'abc')
return struct.pack('c2', 'abc')
return struct.pack('c0', 'abc')
return struct.pack('c5', 'abc')
return struct.pack('x')
return struct.pack('!4bi4', 1, 2)
return struct.pack('!bd', 1, 2)
return struct.pack('!3b', 1)
return struct.pack('z', 1)
return struct.pack('i33', 1)
return struct.pack('i99999999999', 1)
return struct.pack('c99999999999', 'x')
return struct.pack('H')
return struct.pack('H', 'x')
return struct.pack(' < H > H', 1, 1)
return {struct.unpack('HH', '\1\0\2\0')}
return {struct.unpack('>Hb', '\1\0\255')}
return {struct.unpack('H', 'a')}
return {struct.unpack('s', 'abc\0def')}
return {struct.unpack('s', 'abc')}
return {struct.unpack('Bc0', '\3abcdef')}
return {struct.unpack('c0', 'abc')}
return {struct.unpack('c2', 'abc')}
return {struct.unpack('B', 'abc', 2)}
return {struct.unpack('B', 'abc', 0)}
return {struct.unpack('B', 'abc', -1)}
return {struct.unpack('B', 'abc', 100)}
return {struct.unpack('Bc0', '\255abc')}
return {struct.unpack('f', '\0\0\192\63')}
return {struct.unpack('i16', string.rep('\255',16))}
return struct.size('HH')
return struct.size('!8bd')
return struct.size('s')
return struct.size('c0')
return struct.size('c5x')
return struct.size('y')
return bit.tobit(4294967295)
return bit.tobit(1e20)
return bit.tobit(-1.5)
return bit.tohex(255)
return bit.tohex(255,4)
return bit.tohex(255,-4)
return bit.tohex(-1,0)
return bit.tohex(0,-2147483648)
return bit.tohex(255,100)
return bit.band(7,3,1)
return bit.band()
return bit.band('x')
return bit.bor(1,2,4)
return bit.bxor(5,1)
return bit.bnot(0)
return bit.lshift(1,31)
return bit.lshift(1,32)
return bit.rshift(-1,28)
return bit.arshift(-16,2)
return bit.rol(0x12345678,12)
return bit.ror(0x12345678,12)
return bit.bswap(0x12345678)
return bit.tobit(0/0)
return {pcall(function() error({code=5}) end)}
return {pcall(string.rep)}
return {pcall(function() return 1,2,3 end)}
local ok,e=pcall(string.gsub,'a','a',function() error({err='deep'}) end) return {ok,e}
local ok,e=pcall(table.sort,{3,2,1},function() error('in sort') end) return {ok,e}
table.sort({3,2,1},function() return redis.call('get','x') == 1 end) return 1
return redis.pcall('hset','h')
local r = redis.pcall('hset','h') return r['err']
return redis.call('set','x',true)
return redis.call('mget','nosuch','nosuch2')
return redis.call('config','set','x','y')
return redis.call('hello',3)
return redis.call('auth','x')
return redis.call('debug','sleep',0)
return redis.call('script','flush')
return redis.call('evalsha','x',0)
return redis.call('fcall','x',0)
return redis.call('quit')
return redis.call('echo','hi')
return redis.call('ping','hi')
return redis.call('select',99)
return redis.call('select','x')
return redis.call('dbsize')
return redis.call('xadd','st','1-1','a','b')
return redis.call('xread','streams','st','0')
return redis.call('zadd','zs',1,'a',2.5,'b')
return redis.call('zscore','zs','b')
return redis.call('zrange','zs',0,-1,'withscores')
return redis.call('incrbyfloat','fl','1.5')
return redis.call('type','zs')
return redis.call('object','encoding','zs')
return redis.call('expire','zs',100)
redis.setresp(3) return redis.call('zrange','zs',0,-1,'withscores')
redis.setresp(3) local t=redis.call('hgetall','h') return type(t.map)
redis.setresp(3) local t=redis.call('zscore','zs','b') return t.double * 2
redis.setresp(3) return {redis.call('zscore','zs','b')}
redis.setresp(3) redis.setresp(2) return redis.call('hgetall','h')
local t={} for i=1,5 do t[i]=redis.call('incr','counter') end return t
return {KEYS,ARGV}
local function f(n) if n==0 then return 'x' end return f(n-1) end return f(10000)
local function f(n) if n==0 then return 'x' end return (f(n-1)) end return f(150)
local s='' for i=1,100 do s=s..i end return s
return string.format('%5.2f|%d|%s|%q|%x|%c|%e|%g|%i|%u|%o|%X|%%', 3.14159, 42, 'str', 'q"x', 255, 65, 1.5, 0.1, 7, 8, 9, 255)
return string.format('%s', nil)
return string.format('%s')
return string.format('%10s|%-10s|', 'a', 'b')
return string.format('%100d', 1)
return string.upper('abc')..string.lower('ABC')..string.reverse('abc')
return string.len('a\0b')
return ('x'):byte()
return tostring(1e15)..tostring(123456789012345)..tostring(0.1)..tostring(1e100)
return tostring(-0.0)
return 10/3
return 2^53
return 7 % -3
return math.floor(-1.5)
return math.max(1,5,3)
return math.max()
return math.huge
return -math.huge
return math.fmod(7,3)
return math.pow(2,10)
return {math.modf(3.7)}
return {math.frexp(8)}
return math.sqrt(16)
return tostring(math.pi)
return select('#',1,nil,3)
return select(2,'a','b','c')
return select(-1,'a','b','c')
return select(0)
return select(-5,1)
return rawequal('a','a')
return rawset({},1,2)[1]
return rawget({5},1)
return next({5})
return {next({5})}
return next({},'x')
return tonumber('abc')
return tonumber('')
return tonumber(' 12 ')
return tonumber('zz',36)
return tonumber('9',8)
return tonumber(nil)
return tonumber()
return tostring()
return type()
return setmetatable({},nil)
return setmetatable(1,{})
return setmetatable({},1)
return setmetatable({x=1},{__index={y=2}}).y
local t=setmetatable({},{__metatable='locked'}) return getmetatable(t)
local t=setmetatable({},{__metatable='locked'}) setmetatable(t,{})
local t=setmetatable({},{__call=function(self,a) return a*2 end}) return t(21)
local t=setmetatable({},{__tostring=function() return 'T!' end}) return tostring(t)
local t=setmetatable({},{__add=function(a,b) return 99 end}) return t+1
local t=setmetatable({},{__newindex=function() error('frozen') end}) t.x=1
local t=setmetatable({},{__len=function() return 7 end}) return #t
local co=coroutine.create(function(a) local b=coroutine.yield(a+1) return b*2 end) local _,x=coroutine.resume(co,1) local _,y=coroutine.resume(co,10) return {x,y,coroutine.status(co)}
local f=coroutine.wrap(function() for i=1,3 do coroutine.yield(i) end end) return {f(),f(),f()}
return coroutine.resume(1)
return coroutine.create(1)
return coroutine.running()
return {coroutine.resume(coroutine.create(function() return redis.call('ping') end))}
return loadstring('return redis.call("ping")')()
return loadstring('x=1')()
return loadstring('return ...')(5)
return {loadstring('error("in")','=chunk')}
return {pcall(loadstring('error("in")','=chunk'))}
return {pcall(loadstring('error("in")','@file'))}
return {pcall(loadstring('error("in")'))}
local parts={'return ','4','2'} local i=0 return load(function() i=i+1 return parts[i] end)()
return {load(function() return {} end)}
return {pcall(load,function() error('reader') end)}
return load(function() return nil end) ~= nil
return table.remove({1,2,3})
return table.remove({})
return table.remove({1,2,3},1)
local t={1,2,3} table.insert(t,2,9) return t
return table.insert({},1)
return table.insert(nil,1)
return table.concat({1,2,3},', ',2,3)
return table.maxn({1,2,[10]=3})
table.foreach({5},function(k,v) return v end) return 1
return table.setn({},1)
string.x = 1
table.insert = nil
math.pi = 4
bit.band = nil
struct.pack = nil
cmsgpack.pack = nil
coroutine.create = nil
_G.x = 1
_G.redis = nil
rawset(_G,'x',1)
setmetatable(string,{})
setmetatable(redis,{__index={}})
getmetatable('').__index = {}
getmetatable(_G).__index = nil
redis = 1
for k in pairs(_G) do if k == 'print' or k == 'io' or k == 'debug' or k == 'require' or k == 'package' or k == 'dofile' or k == 'loadfile' or k == 'getfenv' or k == 'setfenv' or k == 'newproxy' or k == 'module' then return k end end return 'none'
return os
return io
return debug
return print
return require
return newproxy
return setfenv
return getfenv
return dofile
return module
return package
return redis.register_function
return redis.nosuch
return KEYS[0]
function f() end
local function f() error('x') end f()
local function f() error('x',2) end f()
local function f() redis.call('nosuch') end f()
local ok,e=pcall(function() local x = nil + 1 end) return e
local ok,e=pcall(function() return undefinedvar end) return e
error('a\nb')
return {err='no code'}
return {err='CODE text', extra=1}
return {ok='fine', 1, 2}
return {1, 2, ok='fine'}
return {[1]='a',[2]='b',[4]='d'}
return {double=1/0}
return {double=0/0}
return {double=5}
return {map={1,2}}
return {map={}}
return {set={}}
return {set={1}}
return {big_number='1\r\n2'}
return {verbatim_string={string='a',format='md'}}
return {verbatim_string={string=1,format='txt'}}
return {{map={a={set={b=true}}}}}
return {map={a={err='in map'}}}
return 9007199254740993
return 1e18
return 9223372036854775807
return -9223372036854775808
return 0.5
return '\0\r\n'
return redis.pcall('BZMPOP', '0.005', '1', 'none', 'MIN')
return redis.pcall('BLMPOP', '0.005', '1', 'none', 'LEFT')
return redis.pcall('XREAD', 'NOACK', 'BLOCK', 3, 'STREAMS', 'none', '0')
return redis.pcall('XREAD', 'COUNT', 1, 'BLOCK', 3, 'STREAMS', 'none', '0')
return redis.error_reply('ERR done')
return redis.error_reply(' 12 ')
return redis.error_reply('a\0b c')
return redis.error_reply('A \r\nb\r\n')
error({err = 'a\0b'})
return {{ok = 'a\0b'}, {err = 'c\0d'}}
return _G['a\0b']
redis.call('set', 'k1', 1e17) return redis.call('get', 'k1')
redis.call('set', 'k1', -0.0) return redis.call('get', 'k1')
return tostring(redis.acl_check_cmd('GET', 'a', 'b'))
return cjson.encode({[2^31] = 1})
redis.setresp(3) return {verbatim_string = {format = 'a\0b', string = 'c'}}
redis.call('sadd','letters','f','g','a','aa','b','10','9') return redis.call('sort','letters','by','_')
redis.call('sadd','letters','f','g','a','aa','b','10','9') return {redis.call('sort','letters','by','_','desc','limit',1,3), redis.call('sort_ro','letters','by','_','get','#')}
redis.call('sadd','numbers',10,9,1) redis.call('rpush','order','b','a','c') return {redis.call('sort','numbers','by','_'), redis.call('sort','order','by','_')}
return {pcall(cjson.encode_keep_buffer, 0)}
return {pcall(cjson.encode_invalid_numbers, 1.5)}
return {pcall(cjson.encode_max_depth, 2^32), pcall(cjson.encode_max_depth, -2147483649), cjson.encode_max_depth(1000)}
return {pcall(cjson.decode_max_depth, 1e14), cjson.decode_max_depth(1000)}
return {redis.pcall('echo', 0/0), redis.pcall('echo', -(0/0)), redis.pcall('echo', 1/0)}
return {cmsgpack.pack(2^63), cmsgpack.pack(-2^63), cmsgpack.pack(2^64), cmsgpack.pack(0/0), cmsgpack.pack(1/0)}
return {cmsgpack.unpack_limit('\1\2\3', 0)}
return {cmsgpack.unpack_limit('\1\2\3', 0, 1)}
return {cmsgpack.unpack_limit('\1\2\3', 2^32, 0)}
return {pcall(cmsgpack.unpack_limit, '\1\2\3', 1, 123456789012345678)}
return {pcall(cmsgpack.unpack_one, '\1\2\3', 2^63), pcall(cmsgpack.unpack_one, '\1\2\3', -2147483649)}
return {pcall(struct.size, '\0x'), pcall(struct.size, 'b\255'), pcall(struct.pack, 'b\0x', 1, 2)}
return {struct.pack('<i8', 0/0), struct.pack('<i8', 1/0), struct.pack('<i8', -1/0), struct.pack('<I8', 2^63), struct.pack('<I8', 2^64)}
return {struct.pack('<I8', 1e300), struct.pack('<i4', 2^63 + 2048), struct.pack('b', 1/0), struct.pack('<I16', -1)}
return table.insert()
return table.insert({}, 'x', 1)
table.insert({1}, {}, 1)
local t={1,2,3} table.insert(t,'2',9) return t
local t={1,2,3} table.insert(t,2.9,9) return t
local t={1,2,3} table.insert(t,0,9) return {t[0],t[1],t[2],t[3],t[4]}
local t={1,2,3} table.insert(t,-20000,9) return {t[-20000],t[0],t[1],t[2],t[3],t[4] or 'none'}
local t={} for i=1,30000 do t[i]=i end table.insert(t,1,'x') return {#t,t[1],t[2],t[15000],t[30001]}
local t={1} table.insert(t,5,9) return {t[1],t[5],#t}
local t={1} table.insert(t,nil) return #t
local t={1} table.insert(t,1,nil) return {#t,t[2]}
table.insert()
table.insert(nil, 1)
table.insert({1}, 1, 2, 3)
table.insert({}, 'x', 1)
return {pcall(table.insert)}
return {pcall(table.insert, 1, 2)}
return {pcall(string.find, 'a', '[\0]')}
return {string.find('a\0b', 'a\0b'), string.find('ab', 'a%w*\0x'), string.match('ab', 'a\0x'), string.gsub('aab', 'a\0', 'x')}
return {string.find('a%b', 'a\0%'), pcall(string.match, 'a', '%\0'), pcall(string.find, 'a', '%b\0'), string.match('ba', 'a$\0b')}
local r={} for w in string.gmatch('a b', '%w\0') do r[#r+1]=w end return r
return {tostring(cjson.decode('nan(12_a)')), pcall(cjson.decode, 'nan(1'), cjson.decode('0x1p4'), pcall(cjson.decode, '0x1p'), tostring(cjson.decode('-0x.8'))}
cjson.decode_invalid_numbers(false) local r={tostring(cjson.decode('-.5')), pcall(cjson.decode, '-inf'), pcall(cjson.decode, '--1')} cjson.decode_invalid_numbers(true) return r
return {pcall(cmsgpack.unpack, '\196\1a'), pcall(cmsgpack.unpack, '\198\0\0\0\1a')}
return {struct.unpack('i9', '\0\0\0\0\0\0\0\3abc'), struct.unpack('<i16', string.rep('\255', 16)), struct.unpack('>i12', string.rep('\1', 12))}
return {struct.unpack('Lc0', string.rep('\255', 16)), pcall(struct.unpack, 'bc0', '\255'), struct.unpack('fc0', '\3abc')}
local ok,e=pcall(struct.unpack,string.rep('b',9000),string.rep('a',9000)) return {tostring(ok),e}
local ok,e=pcall(cmsgpack.unpack,string.rep('\1',9000)) return {tostring(ok),e}
local t=setmetatable({},{__index=function(t,k) error('boom') end}) return {pcall(string.gsub,'a b','%w',t)}
local t=setmetatable({},{__index=function(t,k) error({err='x'}) end}) return {pcall(string.gsub,'a b','%w',t)}
local t=setmetatable({a='1'},{__index=function(t,k) return k .. k end}) return {string.gsub('a b c','%w',t)}
local t=setmetatable({},{__index=string}) return {string.gsub('x y','%w',setmetatable({x=false},{__index={y='Y'}}))}
return {#string.rep('x', 2^53), #string.rep('x', 2^32 + 1), #string.rep('x', -2^32 + 2), string.gsub('aa', 'a', 'bb', 2^32), string.gsub('aa', 'a', 'bb', 2^32 + 1)}
return {string.format('%.17g', cjson.decode('0x10000000000000801')), string.format('%.17g', cjson.decode('0x1000000000000081')), string.format('%.17g', cjson.decode('0x.00000000000000000018000000000000100000001p9'))}
