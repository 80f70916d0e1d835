package placement

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"karmada.io/karmada/internal/domain/fnv"
)

// Party takes part in a proportional division.
type Party struct {
	// Name identifies the party and breaks ties.
	Name string
	// Weight is the party's claim in relation to the others. Negative counts
	// as 0.
	Weight int64
}

// Share is what a party got.
type Share struct {
	Name     string
	Replicas int64
}

// Divide spreads want over the parties in proportion to their weights and
// returns one share for each, also the empty ones, by name ascending. The shares
// add up to want, unless there is no party (nil) or want is negative (taken as
// 0). A party without weight gets something only if all are without.
//
// The method is Webster's, also known as Sainte-Laguë: of all quotients
//
//	weight / (2·seats + 1)   for seats = 0, 1, 2, ...   (IEEE 754 double)
//
// the want largest win a replica each. Among equal quotients the one with fewer
// seats wins, then the name: ascending, or descending if tieUID is not empty and
// its 32 bit FNV-1a hash is odd, so that leftovers of many workloads do not
// always pile up in the same cluster.
//
// Growing want never takes anything from a party. No party gets more than its
// weight as long as want is at most the sum of the weights.
//
// A heap would need want steps. Here a divisor is computed first that hands out
// all but about one replica a party at once, which leaves O(m) heap steps for m
// parties, whatever want is.
// See Balinski and Young, Fair Representation, 1982, chapter 4, for the method
// seen as rounding weight/divisor to the nearest whole number.
func Divide(want int64, parties []Party, tieUID string) []Share {
	if len(parties) == 0 {
		return nil
	}
	race := newRace(parties, descends(tieUID))
	race.grant(max(want, 0))
	return race.shares()
}

// descends reports whether ties go to the larger name.
func descends(tieUID string) bool {
	return tieUID != "" && fnv.Sum32(tieUID)%2 == 1
}

// runner is a party on its way to its seats.
type runner struct {
	name     string
	weight   float64
	rank     int // place in a tie, smaller first
	seats    int64
	quotient float64 // what it offers for the next seat
}

func (r *runner) take(seats int64) {
	r.seats = seats
	r.quotient = r.quotientAt(seats)
}

func (r *runner) quotientAt(seats int64) float64 {
	return r.weight / (2*float64(seats) + 1)
}

// race is a heap of runners, the one that gets the next seat on top.
type race []runner

func newRace(parties []Party, descending bool) race {
	runners := make(race, len(parties))
	for i, party := range parties {
		runners[i] = runner{name: party.Name, weight: float64(max(party.Weight, 0))}
	}
	slices.SortStableFunc(runners, func(a, b runner) int {
		if descending {
			return cmp.Compare(b.name, a.name)
		}
		return cmp.Compare(a.name, b.name)
	})
	for i := range runners {
		runners[i].rank = i
	}
	return runners
}

// grant hands out want seats.
func (r race) grant(want int64) {
	if r.weight() == 0 {
		r.grantEvenly(want)
		return
	}
	left := want - r.grantAtOnce(want)
	for i := len(r)/2 - 1; i >= 0; i-- {
		r.sink(i)
	}
	for ; left > 0; left-- {
		r[0].take(r[0].seats + 1)
		r.sink(0)
	}
}

func (r race) weight() float64 {
	sum := 0.0
	for i := range r {
		sum += r[i].weight
	}
	return sum
}

// grantEvenly is the division without weights: all quotients are equal, so the
// seats go round in tie order.
func (r race) grantEvenly(want int64) {
	parties := int64(len(r))
	for i := range r {
		r[i].seats = want / parties
		if int64(i) < want%parties {
			r[i].seats++
		}
	}
}

// grantAtOnce hands out at most want seats, all of which the seat by seat
// procedure would hand out too, and returns their number.
//
// The seats with a quotient above a threshold are among the best ones whenever
// there are at most want of them. With the threshold Σweight/(2·goal) a party has
// weight·goal/Σweight such seats, rounded to a neighbour at most 1/2 away. So a
// goal half a seat a party below want is not exceeded, and misses want by at most
// one seat a party. The slack covers what doubles cannot represent; the loop
// lowers the goal in case it does not.
func (r race) grantAtOnce(want int64) int64 {
	for slack := int64(len(r))/2 + 1 + want>>50; 0 < slack && slack < want; slack *= 2 {
		threshold := r.weight() / (2 * float64(want-slack))
		if granted := r.grantAbove(threshold, want); granted <= want {
			return granted
		}
	}
	r.grantAbove(math.Inf(1), want)
	return 0
}

// grantAbove sets the seats of every runner to the number of its quotients above
// the threshold and returns the sum, or something above want if it is larger.
func (r race) grantAbove(threshold float64, want int64) int64 {
	granted := int64(0)
	for i := range r {
		seats := r[i].above(threshold, want)
		if seats > want-granted {
			return want + 1
		}
		granted += seats
		r[i].take(seats)
	}
	return granted
}

// above counts the quotients of the runner that exceed the threshold, want at
// most. The formula for the count is right but for rounding, so a window around
// its result is searched first.
func (r *runner) above(threshold float64, want int64) int64 {
	ends := func(seats int64) bool { return r.quotientAt(seats) <= threshold }
	guess := int64(math.Min((r.weight/threshold+1)/2, 1<<62))
	low, high := max(min(guess, want)-2, 0), min(guess+2, want)
	if (low > 0 && ends(low-1)) || !ends(high) {
		low, high = 0, want
	}
	return low + int64(sort.Search(int(high-low), func(i int) bool { return ends(low + int64(i)) }))
}

// sink restores the heap below i.
func (r race) sink(i int) {
	for {
		top := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(r); child++ {
			if r.before(child, top) {
				top = child
			}
		}
		if top == i {
			return
		}
		r[i], r[top] = r[top], r[i]
		i = top
	}
}

// before reports whether runner i gets a seat before runner j.
func (r race) before(i, j int) bool {
	a, b := &r[i], &r[j]
	switch {
	case a.quotient != b.quotient:
		return a.quotient > b.quotient
	case a.seats != b.seats:
		return a.seats < b.seats
	default:
		return a.rank < b.rank
	}
}

func (r race) shares() []Share {
	shares := make([]Share, len(r))
	for i := range r {
		shares[i] = Share{Name: r[i].name, Replicas: r[i].seats}
	}
	slices.SortStableFunc(shares, func(a, b Share) int { return cmp.Compare(a.Name, b.Name) })
	return shares
}
