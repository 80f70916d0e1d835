package placement

import (
	"math"
	"slices"
	"sort"
	"strings"

	"karmada.io/karmada/internal/domain/binding"
)

// WeightedCluster is one cluster in a proportional division.
type WeightedCluster struct {
	// Name identifies the cluster and is unique. It also decides between clusters with equal
	// quotients.
	Name string
	// Weight is the weight of the cluster in relation to the other clusters. A negative weight
	// counts as 0.
	Weight int64
}

// Share is the number of replicas that a cluster gets.
type Share struct {
	Name     string
	Replicas int64
}

// Divide divides want replicas over the clusters in proportion to their weights. It returns one
// share for each cluster, including empty shares, sorted by name. The shares add up to want.
// Without clusters the result is nil. A negative want counts as 0. A cluster with weight 0 gets
// replicas only if all weights are 0.
//
// The method is Webster's, also known as Sainte-Laguë: of all quotients
//
//	weight / (2·seats + 1)   for seats = 0, 1, 2, ...   (IEEE 754 double)
//
// each of the want largest quotients gets its cluster one replica. Of equal quotients, the cluster
// with fewer seats gets the replica first. If the seats are equal too, the clusters are sorted by
// name: descending if tieUID is not empty and its 32-bit FNV-1a hash is odd, otherwise ascending.
// The order depends on tieUID because otherwise the same cluster would get the remainders of most
// workloads.
//
// A larger want never reduces a share. No cluster gets more than its weight as long as want is
// at most the sum of the weights.
//
// With only a heap, want steps would be needed. This implementation first computes a divisor that
// assigns all but about one replica for each cluster at once. The heap then needs O(m) steps for m
// clusters, independent of want. Balinski and Young, Fair Representation, 1982, chapter 4, describe
// the method as rounding weight/divisor to the nearest whole number.
func Divide(want int64, weighted []WeightedCluster, tieUID string) []Share {
	if len(weighted) == 0 {
		return nil
	}
	byName := sortedByName(weighted)
	heap := newDivisionHeap(weighted, byName, breaksTiesDescending(tieUID))
	heap.assignSeats(max(want, 0))
	return heap.shares(weighted, byName)
}

// breaksTiesDescending reports whether, of several clusters with equal quotients, the larger name
// gets the next seat.
func breaksTiesDescending(tieUID string) bool {
	return tieUID != "" && binding.Hash32(tieUID)%2 == 1
}

// sortedByName returns the indexes of the clusters, sorted by name.
func sortedByName(weighted []WeightedCluster) []int32 {
	order := make([]int32, len(weighted))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(weighted[a].Name, weighted[b].Name) })
	return order
}

// heapEntry is a cluster with the number of seats, that is replicas, that are assigned to it so
// far. It has no pointer, because the heap moves entries often.
type heapEntry struct {
	weight   float64
	position int32 // of the cluster in the order of names
	tieRank  int32 // of equal quotients, the smaller rank gets the seat
	seats    int64
	quotient float64 // for the next seat
}

func (h *heapEntry) setSeats(seats int64) {
	h.seats = seats
	h.quotient = h.quotientAt(seats)
}

func (h *heapEntry) quotientAt(seats int64) float64 {
	return h.weight / (2*float64(seats) + 1)
}

// divisionHeap is a heap of clusters. The cluster at the top gets the next seat.
type divisionHeap []heapEntry

// newDivisionHeap returns the entries in the order of their tie ranks.
func newDivisionHeap(weighted []WeightedCluster, byName []int32, descending bool) divisionHeap {
	entries := make(divisionHeap, len(weighted))
	for position, i := range byName {
		entries[position] = heapEntry{weight: float64(max(weighted[i].Weight, 0)), position: int32(position)}
	}
	if descending {
		slices.Reverse(entries)
	}
	for rank := range entries {
		entries[rank].tieRank = int32(rank)
	}
	return entries
}

// assignSeats assigns want seats to the clusters.
func (d divisionHeap) assignSeats(want int64) {
	if d.totalWeight() == 0 {
		d.assignEvenly(want)
		return
	}
	left := want - d.assignInBulk(want)
	for i := len(d)/2 - 1; i >= 0; i-- {
		d.siftDown(i)
	}
	for ; left > 0; left-- {
		d[0].setSeats(d[0].seats + 1)
		d.siftDown(0)
	}
}

func (d divisionHeap) totalWeight() float64 {
	sum := 0.0
	for i := range d {
		sum += d[i].weight
	}
	return sum
}

// assignEvenly assigns want seats if all weights are 0. All quotients are equal then, so only the
// tie ranks determine the order in which clusters get seats.
func (d divisionHeap) assignEvenly(want int64) {
	parties := int64(len(d))
	for i := range d {
		d[i].seats = want / parties
		if int64(i) < want%parties {
			d[i].seats++
		}
	}
}

// assignInBulk assigns at most want seats at once and returns the number of assigned seats.
// Assigning the seats one by one would assign all of these seats too.
//
// If at most want seats have a quotient above a threshold, all of these seats are among the seats
// to assign. With the threshold Σweight/(2·goal) a cluster has weight·goal/Σweight such seats,
// rounded to an integer at most 1/2 away. So if goal is less than want by half a seat for each
// cluster, at most want seats are assigned, and at most one seat for each cluster remains to be
// assigned. The slack covers rounding errors of doubles; the loop lowers the goal if the slack is
// too small.
func (d divisionHeap) assignInBulk(want int64) int64 {
	for slack := int64(len(d))/2 + 1 + want>>50; 0 < slack && slack < want; slack *= 2 {
		threshold := d.totalWeight() / (2 * float64(want-slack))
		if assigned := d.assignAbove(threshold, want); assigned <= want {
			return assigned
		}
	}
	d.assignAbove(math.Inf(1), want)
	return 0
}

// assignAbove sets the seats of every entry to the number of its quotients above the threshold, and
// returns the total number of seats. If the total exceeds want, the result is some number above
// want.
func (d divisionHeap) assignAbove(threshold float64, want int64) int64 {
	assigned := int64(0)
	for i := range d {
		seats := d[i].countAbove(threshold, want)
		if seats > want-assigned {
			return want + 1
		}
		assigned += seats
		d[i].setSeats(seats)
	}
	return assigned
}

// countAbove returns the number of quotients of the entry that exceed the threshold, at most want.
// The formula is exact except for rounding, so a window around its result is searched first.
func (h *heapEntry) countAbove(threshold float64, want int64) int64 {
	isAtOrBelow := func(seats int64) bool { return h.quotientAt(seats) <= threshold }
	guess := int64(math.Min((h.weight/threshold+1)/2, 1<<62))
	low, high := max(min(guess, want)-2, 0), min(guess+2, want)
	if (low > 0 && isAtOrBelow(low-1)) || !isAtOrBelow(high) {
		low, high = 0, want
	}
	return low + int64(sort.Search(int(high-low), func(i int) bool { return isAtOrBelow(low + int64(i)) }))
}

// siftDown restores the heap property below i.
func (d divisionHeap) siftDown(i int) {
	for {
		top := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(d); child++ {
			if d.precedes(child, top) {
				top = child
			}
		}
		if top == i {
			return
		}
		d[i], d[top] = d[top], d[i]
		i = top
	}
}

// precedes reports whether entry i gets a seat before entry j.
func (d divisionHeap) precedes(i, j int) bool {
	a, b := &d[i], &d[j]
	switch {
	case a.quotient != b.quotient:
		return a.quotient > b.quotient
	case a.seats != b.seats:
		return a.seats < b.seats
	default:
		return a.tieRank < b.tieRank
	}
}

// shares returns the shares of the clusters, sorted by name.
func (d divisionHeap) shares(weighted []WeightedCluster, byName []int32) []Share {
	shares := make([]Share, len(d))
	for i := range d {
		position := d[i].position
		shares[position] = Share{Name: weighted[byName[position]].Name, Replicas: d[i].seats}
	}
	return shares
}
