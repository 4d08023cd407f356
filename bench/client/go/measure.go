package main

import (
	"math"
	"slices"
	"syscall"
	"time"
)

// Processor time of this process, in microseconds.
func cpuUs() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	us := func(t syscall.Timeval) float64 { return float64(t.Sec)*1e6 + float64(t.Usec) }
	return us(usage.Utime) + us(usage.Stime)
}

// Times of calls, in nanoseconds. All of them: percentiles are exact.
type times []uint32

func (t *times) push(took time.Duration) {
	*t = append(*t, uint32(min(took.Nanoseconds(), math.MaxUint32)))
}

// That of so many in a thousand, in microseconds. They are sorted.
func (t times) at(permille int) float64 {
	if len(t) == 0 {
		return 0
	}
	return float64(t[(len(t)-1)*permille/1000]) / 1e3
}

func (r report) addTimes(prefix string, t times) {
	slices.Sort(t)
	r[prefix+"p50_us"], r[prefix+"p99_us"], r[prefix+"p999_us"] = t.at(500), t.at(990), t.at(999)
}

// Numbers by chance (splitmix64).
type chance uint64

func newChance(seed uint64) *chance {
	c := chance(seed * 0x9e3779b97f4a7c15)
	return &c
}

func (c *chance) next() uint64 {
	*c += 0x9e3779b97f4a7c15
	mixed := uint64(*c)
	mixed = (mixed ^ mixed>>30) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ mixed>>27) * 0x94d049bb133111eb
	return mixed ^ mixed>>31
}

// From 0 to 1, without 1.
func (c *chance) part() float64 {
	return float64(c.next()>>11) / (1 << 53)
}

// The gap in front of the next arrival of a Poisson process.
func (c *chance) gap(rate float64) time.Duration {
	return time.Duration(-math.Log(1-c.part()) / rate * 1e9)
}
