package main

import (
	"fmt"
	"time"
)

// The slots of the callers' keys: those that something is done to, and some of each other shard.
var clusterSlots = [3][2]uint16{{0, 1_000}, {5_500, 10_900}, {11_000, 16_384}}

// Time is counted in pieces of so long.
const piece = 100 * time.Millisecond

func slotOf(tag string) uint16 {
	crc := uint16(0)
	for _, b := range []byte(tag) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}

// A hash tag of this caller alone, of a slot among these.
func hashTag(caller int, slots [2]uint16) string {
	for turn := 0; ; turn++ {
		tag := fmt.Sprintf("%d:%d", caller, turn)
		if slot := slotOf(tag); slots[0] <= slot && slot < slots[1] {
			return "{" + tag + "}"
		}
	}
}

type clusterDone struct {
	counter counter
	wrong   int64
	pieces  []float64
}

// Callers of a cluster to which something is done at a third of their time, by the xtask. Each has keys of one shard: it counts one up,
// and reads another.
func cluster(p peer, o options) report {
	count := int(o.time() / piece)
	all := crowd(o.tasks, func(caller int) (done clusterDone) {
		done.pieces = make([]float64, count)
		tag := hashTag(caller, clusterSlots[caller%3])
		counted, value := tag+"n", tag+"v"
		must(p.set(background, value, []byte(value)))
		left := time.Until(time.UnixMilli(o.beginMs))
		if left < 0 {
			panic("the keys are set before the load begins")
		}
		time.Sleep(left)
		began := time.Now()
		for time.Since(began) < o.time() {
			number, countErr := p.incr(background, counted)
			done.counter.note(number, countErr)
			isRight, readErr := p.getIs(background, value, []byte(value))
			if readErr == nil && !isRight {
				done.wrong++
			}
			if at := int(time.Since(began) / piece); at < count {
				for _, err := range []error{countErr, readErr} {
					if err == nil {
						done.pieces[at]++
					}
				}
			}
			if readErr != nil {
				done.counter.unread++
			}
			if o.pauseMs > 0 {
				time.Sleep(time.Duration(o.pauseMs) * time.Millisecond)
			}
		}
		done.counter.count(p, counted)
		return
	})
	rate := func(of func(shard int) bool, from, to int) (ops float64) {
		for caller, done := range all {
			for at := from; at < to && of(caller%3); at++ {
				ops += done.pieces[at]
			}
		}
		return ops / (float64(to-from) * piece.Seconds())
	}
	third := count / 3
	others := func(shard int) bool { return shard > 0 }
	before, during := rate(others, count/10, third), rate(others, third, 2*third)
	worst := rate(others, third, third+5)
	for at := third; at < count-4; at++ {
		worst = min(worst, rate(others, at, at+5))
	}
	gap, longest := 0, 0
	for at := third; at < count; at++ {
		gap++
		if rate(func(shard int) bool { return shard == 0 }, at, at+1) > 0 {
			gap = 0
		}
		longest = max(longest, gap)
	}
	lost, wrong := int64(0), int64(0)
	var counters []counter
	for caller, done := range all {
		if caller%3 == 0 {
			// Of a primary that is killed, what was not copied is lost: its counters go back.
			lost += done.counter.wrong
			done.counter.wrong = 0
		}
		wrong += done.wrong
		counters = append(counters, done.counter)
	}
	r := reportOf(counters)
	r["wrong"] += float64(wrong)
	r["lost"] = float64(lost)
	r["ops_s"] = rate(func(int) bool { return true }, count/10, third)
	r["others_before"], r["others_during"] = before, during
	r["others_to_before"], r["others_worst"] = during/before, worst/before
	r["gap_ms"] = float64(longest) * float64(piece.Milliseconds())
	return r
}
