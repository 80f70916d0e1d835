package placement

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"karmada.io/karmada/internal/domain/fnv"
)

// WeightedCluster is one cluster in a proportional division.
type WeightedCluster struct {
	// Name identifies the cluster and breaks ties.
	Name string
	// Weight is relative to the other clusters. A negative weight counts as 0.
	Weight int64
}

// Share is the number of replicas that a cluster gets.
type Share struct {
	Name     string
	Replicas int64
}

// Divide spreads want over the clusters in proportion to their weights. It returns one share for
// each cluster, including empty shares, sorted by name. The shares add up to want, except that
// the result is nil without clusters, and that a negative want counts as 0. A cluster with
// weight 0 gets replicas only if all weights are 0.
//
// The method is Webster's, also known as Sainte-Laguë: of all quotients
//
//	weight / (2·seats + 1)   for seats = 0, 1, 2, ...   (IEEE 754 double)
//
// the want largest win a replica each. Among equal quotients the cluster with fewer seats wins,
// then the name: ascending, or descending if tieBreakUID is not empty and its 32 bit FNV-1a hash
// is odd. Without this, the remainders of many workloads would pile up in the same cluster.
//
// A larger want never reduces a share. No cluster gets more than its weight as long as want is
// at most the sum of the weights.
//
// A plain heap would need want steps. This implementation first computes a divisor that assigns
// all but about one replica for each cluster at once. That leaves O(m) heap steps for m
// clusters, independent of want. See Balinski and Young, Fair Representation, 1982, chapter 4,
// for the method described as rounding weight/divisor to the nearest whole number.
func Divide(want int64, weighted []WeightedCluster, tieUID string) []Share {
	if len(weighted) == 0 {
		return nil
	}
	heap := newDivisionHeap(weighted, breaksTiesDescending(tieUID))
	heap.assignSeats(max(want, 0))
	return heap.shares()
}

// breaksTiesDescending reports whether the larger name wins a tie.
func breaksTiesDescending(tieUID string) bool {
	return tieUID != "" && fnv.Sum32(tieUID)%2 == 1
}

// heapEntry is a cluster with the seats, that is replicas, that it has so far.
type heapEntry struct {
	name     string
	weight   float64
	tieRank  int // the smaller rank wins a tie
	seats    int64
	quotient float64 // for the next seat
}

func (r *heapEntry) setSeats(seats int64) {
	r.seats = seats
	r.quotient = r.quotientAt(seats)
}

func (r *heapEntry) quotientAt(seats int64) float64 {
	return r.weight / (2*float64(seats) + 1)
}

// divisionHeap is a heap with the cluster that gets the next seat on top.
type divisionHeap []heapEntry

func newDivisionHeap(weighted []WeightedCluster, descending bool) divisionHeap {
	entries := make(divisionHeap, len(weighted))
	for i, party := range weighted {
		entries[i] = heapEntry{name: party.Name, weight: float64(max(party.Weight, 0))}
	}
	slices.SortStableFunc(entries, func(a, b heapEntry) int {
		if descending {
			return cmp.Compare(b.name, a.name)
		}
		return cmp.Compare(a.name, b.name)
	})
	for i := range entries {
		entries[i].tieRank = i
	}
	return entries
}

// assignSeats distributes want seats.
func (r divisionHeap) assignSeats(want int64) {
	if r.totalWeight() == 0 {
		r.assignEvenly(want)
		return
	}
	left := want - r.assignInBulk(want)
	for i := len(r)/2 - 1; i >= 0; i-- {
		r.siftDown(i)
	}
	for ; left > 0; left-- {
		r[0].setSeats(r[0].seats + 1)
		r.siftDown(0)
	}
}

func (r divisionHeap) totalWeight() float64 {
	sum := 0.0
	for i := range r {
		sum += r[i].weight
	}
	return sum
}

// assignEvenly divides without weights. All quotients are equal, so the seats are assigned in
// tie order.
func (r divisionHeap) assignEvenly(want int64) {
	parties := int64(len(r))
	for i := range r {
		r[i].seats = want / parties
		if int64(i) < want%parties {
			r[i].seats++
		}
	}
}

// assignInBulk assigns at most want seats at once and returns their number. The seat by seat
// procedure would assign all of these seats too.
//
// The seats with a quotient above a threshold are among the best ones whenever there are at most
// want of them. With the threshold Σweight/(2·goal) a cluster has weight·goal/Σweight such
// seats, rounded to a neighbour at most 1/2 away. So a goal that is half a seat for each cluster
// below want is not exceeded, and misses want by at most one seat for each cluster. The slack
// covers rounding errors of doubles; the loop lowers the goal if the slack is too small.
func (r divisionHeap) assignInBulk(want int64) int64 {
	for slack := int64(len(r))/2 + 1 + want>>50; 0 < slack && slack < want; slack *= 2 {
		threshold := r.totalWeight() / (2 * float64(want-slack))
		if assigned := r.assignAbove(threshold, want); assigned <= want {
			return assigned
		}
	}
	r.assignAbove(math.Inf(1), want)
	return 0
}

// assignAbove sets the seats of every entry to the number of its quotients above the threshold
// and returns the sum. It returns a number above want if the sum is larger than want.
func (r divisionHeap) assignAbove(threshold float64, want int64) int64 {
	assigned := int64(0)
	for i := range r {
		seats := r[i].countAbove(threshold, want)
		if seats > want-assigned {
			return want + 1
		}
		assigned += seats
		r[i].setSeats(seats)
	}
	return assigned
}

// countAbove counts the quotients of the entry that exceed the threshold, at most want. The
// formula is exact except for rounding, so a window around its result is searched first.
func (r *heapEntry) countAbove(threshold float64, want int64) int64 {
	isAtOrBelow := func(seats int64) bool { return r.quotientAt(seats) <= threshold }
	guess := int64(math.Min((r.weight/threshold+1)/2, 1<<62))
	low, high := max(min(guess, want)-2, 0), min(guess+2, want)
	if (low > 0 && isAtOrBelow(low-1)) || !isAtOrBelow(high) {
		low, high = 0, want
	}
	return low + int64(sort.Search(int(high-low), func(i int) bool { return isAtOrBelow(low + int64(i)) }))
}

// siftDown restores the heap property below i.
func (r divisionHeap) siftDown(i int) {
	for {
		top := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(r); child++ {
			if r.precedes(child, top) {
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

// precedes reports whether entry i gets a seat before entry j.
func (r divisionHeap) precedes(i, j int) bool {
	a, b := &r[i], &r[j]
	switch {
	case a.quotient != b.quotient:
		return a.quotient > b.quotient
	case a.seats != b.seats:
		return a.seats < b.seats
	default:
		return a.tieRank < b.tieRank
	}
}

func (r divisionHeap) shares() []Share {
	shares := make([]Share, len(r))
	for i := range r {
		shares[i] = Share{Name: r[i].name, Replicas: r[i].seats}
	}
	slices.SortStableFunc(shares, func(a, b Share) int { return cmp.Compare(a.Name, b.Name) })
	return shares
}
