package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	keys      = 10_000
	warmUp    = 500 * time.Millisecond
	bigBytes  = 8 << 20
	bigPause  = 50 * time.Millisecond
	block     = 250
	crowdSize = 1000
	crowdTime = 2 * time.Second
	owedMax   = 200_000
)

var background = context.Background()

func run(p peer, o options) report {
	makeKeys(o.valueBytes)
	switch o.scenario {
	case "serial":
		return serial(p, o)
	case "closed":
		return closed(p, o)
	case "batch":
		return batch(p, o)
	case "cluster":
		return cluster(p, o)
	case "open":
		return open(p, o)
	case "big":
		return big(p, o)
	case "cancel":
		return cancel(p, o)
	case "restart":
		return restart(p, o)
	}
	panic("the scenario is not known")
}

// The keys of the load and their values, made before it is measured. A value says whose it is.
var (
	keyTexts [keys]string
	values   [keys][]byte
)

func makeKeys(bytes int) {
	for number := range keys {
		keyTexts[number] = fmt.Sprintf("load:%011d", number)
		values[number] = fmt.Appendf(nil, "%0*d", bytes, number)
	}
}

func keyOf(number int) (string, []byte) {
	return keyTexts[number%keys], values[number%keys]
}

// What callers have found.
type found struct {
	times         times
	errors, wrong int
}

func (f *found) note(isRight bool, err error) {
	if err != nil {
		f.errors++
	} else if !isRight {
		f.wrong++
	}
}

func (f *found) add(other found) {
	f.times = append(f.times, other.times...)
	f.errors += other.errors
	f.wrong += other.wrong
}

func (f found) report(r report) {
	r.addTimes("", f.times)
	r["ops"], r["errors"], r["wrong"] = float64(len(f.times)), float64(f.errors), float64(f.wrong)
}

// Runs so many callers and gives what they return.
func crowd[T any](callers int, call func(caller int) T) []T {
	results := make([]T, callers)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() { results[caller] = call(caller) })
	}
	all.Wait()
	return results
}

func sum(all []found) (total found) {
	for _, f := range all {
		total.add(f)
	}
	return
}

func fill(p peer) {
	const fillers = 32
	crowd(fillers, func(filler int) bool {
		for number := filler; number < keys; number += fillers {
			key, value := keyOf(number)
			must(p.set(background, key, value))
		}
		return true
	})
}

// Callers that ask again as soon as they have their reply: SET and GET of the same key, in turns; or GET alone.
func load(p peer, callers int, length time.Duration, onlyReads bool) (time.Duration, found) {
	began := time.Now()
	until := began.Add(length)
	all := crowd(callers, func(caller int) (f found) {
		for turn := caller * 7919 * 2; ; turn++ {
			key, value := keyOf(turn / 2)
			began := time.Now()
			if !began.Before(until) {
				return
			}
			isRight, err := true, error(nil)
			if turn%2 == 0 && !onlyReads {
				err = p.set(background, key, value)
			} else {
				isRight, err = p.getIs(background, key, value)
			}
			f.times.push(time.Since(began))
			f.note(isRight, err)
		}
	})
	return time.Since(began), sum(all)
}

func allocations() float64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.Mallocs)
}

func closed(p peer, o options) report {
	load(p, o.tasks, warmUp, false)
	allocated, cpu := allocations(), cpuUs()
	took, f := load(p, o.tasks, o.time(), false)
	cpu = cpuUs() - cpu
	allocated = allocations() - allocated
	r, ops := report{}, float64(len(f.times))
	r["ops_s"], r["cpu_us"], r["allocations"] = ops/took.Seconds(), cpu/ops, allocated/ops
	f.report(r)
	return r
}

// A closed loop of batches: as many SET, then GET of the same keys.
func batch(p peer, o options) report {
	load := func(length time.Duration) (time.Duration, found) {
		began := time.Now()
		until := began.Add(length)
		all := crowd(o.tasks, func(caller int) (f found) {
			for turn := caller * 7919 * 2; ; turn++ {
				began := time.Now()
				if !began.Before(until) {
					return
				}
				first := turn / 2 * o.batch % (keys - o.batch)
				some, theirs := keyTexts[first:first+o.batch], values[first:first+o.batch]
				isRight, err := true, error(nil)
				if turn%2 == 0 {
					err = p.setAll(background, some, theirs)
				} else {
					isRight, err = p.getAre(background, some, theirs)
				}
				f.times.push(time.Since(began))
				f.note(isRight, err)
			}
		})
		return time.Since(began), sum(all)
	}
	load(warmUp)
	allocated, cpu := allocations(), cpuUs()
	took, f := load(o.time())
	cpu = cpuUs() - cpu
	allocated = allocations() - allocated
	r, ops := report{}, float64(len(f.times)*o.batch)
	r["ops_s"], r["cpu_us"], r["allocations"] = ops/took.Seconds(), cpu/ops, allocated/ops
	f.report(r)
	return r
}

type kind struct {
	times times
	cpuUs float64
}

func (k *kind) block(call func()) {
	cpu := cpuUs()
	for range block {
		began := time.Now()
		call()
		k.times.push(time.Since(began))
	}
	k.cpuUs += cpuUs() - cpu
}

func (k *kind) report(prefix string, r report) {
	r.addTimes(prefix, k.times)
	r[prefix+"cpu_us"] = k.cpuUs / float64(len(k.times))
}

// One caller beside a socket without a client, in blocks that alternate; then again on the connections that have had a crowd.
func serial(p peer, o options) report {
	network, address := "tcp", o.address
	if path, isUnix := strings.CutPrefix(o.address, "unix:"); isUnix {
		network, address = "unix", path
	}
	socket, err := net.Dial(network, address)
	must(err)
	key, value := keyOf(0)
	must(p.set(background, key, value))
	request := fmt.Appendf(nil, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(key), key)
	reply := make([]byte, len(fmt.Sprintf("$%d\r\n", len(value)))+len(value)+2)
	var all found
	blocks := func(length time.Duration) (raw, get, set kind) {
		for until := time.Now().Add(length); time.Now().Before(until); {
			raw.block(func() {
				_, err := socket.Write(request)
				must(err)
				_, err = io.ReadFull(socket, reply)
				must(err)
			})
			get.block(func() { all.note(p.getIs(background, key, value)) })
			set.block(func() { all.note(true, p.set(background, key, value)) })
		}
		return
	}
	blocks(warmUp / 2)
	raw, get, set := blocks(o.time() / 2)
	load(p, crowdSize, crowdTime, false)
	afterRaw, after, _ := blocks(o.time() / 2)
	r := report{}
	raw.report("raw_", r)
	get.report("", r)
	set.report("set_", r)
	afterRaw.report("after_raw_", r)
	after.report("after_", r)
	first, second := get.times.at(500)/raw.times.at(500), after.times.at(500)/afterRaw.times.at(500)
	r["to_raw"], r["set_to_raw"] = first, set.times.at(500)/raw.times.at(500)
	r["after_to_raw"], r["after_to_before"] = second, second/first
	r["ops"] = float64(len(get.times) + len(after.times))
	r["errors"], r["wrong"] = float64(all.errors), float64(all.wrong)
	return r
}

// Requests that do not wait for others' replies: a Poisson process. Times count from when a request was due.
func open(p peer, o options) report {
	fill(p)
	load(p, o.tasks, warmUp, false)
	var (
		mutex   sync.Mutex
		all     found
		late    times
		callers sync.WaitGroup
		owed    atomic.Int64
	)
	cpu, began, overrun := cpuUs(), time.Now(), false
	paced := make(chan bool)
	go func() {
		// In the kernel: the runtime's clock is too coarse.
		runtime.LockOSThread()
		c := newChance(o.seed)
		due := time.Now()
		for until := due.Add(o.time()); due.Before(until) && !overrun; {
			due = due.Add(c.gap(o.rate))
			if wait := time.Until(due); wait > 0 {
				pause := syscall.NsecToTimespec(wait.Nanoseconds())
				_ = syscall.Nanosleep(&pause, nil)
			}
			late.push(time.Since(due))
			at, turn := due, int(c.next()>>1)
			overrun = owed.Add(1) > owedMax
			callers.Go(func() {
				key, value := keyOf(turn / 2)
				isRight, err := true, error(nil)
				if turn%2 == 0 {
					err = p.set(background, key, value)
				} else {
					isRight, err = p.getIs(background, key, value)
				}
				owed.Add(-1)
				mutex.Lock()
				all.times.push(time.Since(at))
				all.note(isRight, err)
				mutex.Unlock()
			})
		}
		close(paced)
	}()
	<-paced
	callers.Wait()
	took, cpu := time.Since(began), cpuUs()-cpu
	r, ops := report{}, float64(len(all.times))
	r["ops_s"], r["cpu_us"], r["rate"] = ops/took.Seconds(), cpu/ops, o.rate
	r["overrun"] = 0
	if overrun {
		r["overrun"] = 1
	}
	r.addTimes("late_", late)
	delete(r, "late_p999_us")
	all.report(r)
	return r
}

// Small values, without and with one caller that reads a large one now and then.
func big(p peer, o options) report {
	value := make([]byte, bigBytes)
	for place := range value {
		value[place] = 'b'
	}
	must(p.set(background, "big", value))
	fill(p)
	load(p, o.tasks, warmUp, true)
	half := o.time() / 2
	_, alone := load(p, o.tasks, half, true)
	var large found
	isOver := make(chan bool)
	go func() {
		due := time.Now()
		for until := due.Add(half); due.Before(until); due = due.Add(bigPause) {
			time.Sleep(time.Until(due))
			isRight, err := p.getIs(background, "big", value)
			large.times.push(time.Since(due))
			large.note(isRight, err)
		}
		close(isOver)
	}()
	_, beside := load(p, o.tasks, half, true)
	<-isOver
	r := report{}
	r.addTimes("alone_", alone.times)
	r.addTimes("big_", large.times)
	r["big_ops"] = float64(len(large.times))
	beside.errors += alone.errors + large.errors
	beside.wrong += alone.wrong + large.wrong
	beside.report(r)
	return r
}

// One caller's counter, which nothing else counts up: every reply says how often its requests were executed so far.
type counter struct {
	acknowledged, maybe, last, maybeSince, wrong, repeated, cancelled, unread int64
}

func (c *counter) note(value int64, err error) {
	if err != nil {
		c.maybe++
		c.maybeSince++
		return
	}
	c.acknowledged++
	grown := value - c.last
	if grown < 1 {
		c.wrong++
	}
	c.repeated += max(grown-1-c.maybeSince, 0)
	c.last, c.maybeSince = value, 0
}

// Asks until the server answers: the last reply says what it has counted.
func (c *counter) count(p peer, key string) {
	for range 100 {
		value, err := p.incr(background, key)
		c.note(value, err)
		if err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	panic("the server does not answer any more")
}

func reportOf(all []counter) report {
	r := report{"acknowledged": 0, "not_sent": 0, "maybe": 0, "repeated": 0, "untrue": 0, "wrong": 0}
	for _, c := range all {
		r["acknowledged"] += float64(c.acknowledged)
		r["maybe"] += float64(c.maybe)
		r["repeated"] += float64(c.repeated)
		r["wrong"] += float64(c.wrong)
		r["cancelled"] += float64(c.cancelled)
		r["unread"] += float64(c.unread)
	}
	return r
}

// Three calls of ten are given up, at any time between none at all and twice the usual.
func cancel(p peer, o options) report {
	_, f := load(p, o.tasks, warmUp, false)
	f.report(report{})
	usual := f.times.at(500) * 1e3
	until := time.Now().Add(o.time())
	return reportOf(crowd(o.tasks, func(caller int) (c counter) {
		chance := newChance(o.seed ^ uint64(caller)<<32)
		counted := fmt.Sprintf("cancel:%d:%d", o.seed, caller)
		key, value := keyOf(caller)
		for time.Now().Before(until) {
			if chance.part() < 0.3 {
				reply, err := incrFor(p, counted, time.Duration(usual*2*chance.part()))
				c.note(reply, err)
				if err != nil {
					c.cancelled++
				}
			} else if chance.next()%2 == 0 {
				c.note(p.incr(background, counted))
			} else if p.set(background, key, value) == nil {
				isRight, err := p.getIs(background, key, value)
				if err == nil && !isRight {
					c.wrong++
				}
			}
		}
		c.count(p, counted)
		return
	}))
}

// The server is ended and started again meanwhile, by the xtask. It keeps what it has executed.
func restart(p peer, o options) report {
	until := time.Now().Add(o.time())
	return reportOf(crowd(o.tasks, func(caller int) (c counter) {
		counted := fmt.Sprintf("restart:%d:%d", o.seed, caller)
		for time.Now().Before(until) {
			value, err := p.incr(background, counted)
			c.note(value, err)
			if err != nil {
				time.Sleep(time.Millisecond)
			}
		}
		c.count(p, counted)
		return
	}))
}
