package quota

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// fleet is a model of one namespace: an API server, admissions that watch it with a delay, and clients
// whose requests may fail after they were admitted.
type fleet struct {
	limit   int64
	bound   int64 // the usage that must never be exceeded
	version int
	stored  map[types.UID]storedBinding
	events  []bindingEvent
	ledger  Ledger
	// admissions are the numbers of events that each replica has seen.
	admissions []int
	requests   []inFlight
	now        time.Time
	created    int
}

type storedBinding struct {
	version int
	cpu     int64
}

// bindingEvent is a change of a binding. A deleted binding uses nothing.
type bindingEvent struct {
	uid     types.UID
	version int
	cpu     int64
}

// inFlight is an admitted request that is not stored yet.
type inFlight struct {
	uid      types.UID
	base     int // 0 creates the binding
	cpu      int64
	deadline time.Time
}

// visible returns the state that an admission has seen.
func (f *fleet) visible(admission int) Namespace {
	namespace := Namespace{Limits: []Limit{{Overall: cpuList(f.limit)}}, Stored: map[types.UID]StoredUsage{}, Ledger: f.ledger}
	for _, event := range f.events[:f.admissions[admission]] {
		namespace.Version = strconv.Itoa(event.version)
		namespace.Stored[event.uid] = StoredUsage{ResourceVersion: namespace.Version, Usage: cpuList(event.cpu)}
	}
	return namespace
}

func cpuList(cpu int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}
}

func (f *fleet) usage() (sum int64) {
	for _, each := range f.stored {
		sum += each.cpu
	}
	return sum
}

// admit sends a request to an admission. A request that is admitted stays in flight.
func (f *fleet) admit(admission int, uid types.UID, cpu int64) error {
	before, namespace := f.stored[uid], f.visible(admission)
	request := Request{UID: uid, Before: cpuList(before.cpu), After: cpuList(cpu)}
	if before.version != 0 {
		request.Base = strconv.Itoa(before.version)
	}
	if namespace.NeedsRoom(request) {
		ledger, err := namespace.Admit(request, f.now)
		if err != nil {
			return err
		}
		f.ledger = ledger
	}
	f.requests = append(f.requests, inFlight{uid: uid, base: before.version, cpu: cpu, deadline: f.now.Add(ReservationLifetime)})
	return nil
}

// finish stores a request in flight if the binding is unchanged, or lets it fail.
func (f *fleet) finish(i int, fails bool) {
	request := f.requests[i]
	f.requests = slices.Delete(f.requests, i, i+1)
	if fails || f.stored[request.uid].version != request.base {
		return
	}
	f.store(request.uid, request.cpu)
}

func (f *fleet) store(uid types.UID, cpu int64) {
	f.version++
	f.stored[uid] = storedBinding{version: f.version, cpu: cpu}
	f.events = append(f.events, bindingEvent{uid: uid, version: f.version, cpu: cpu})
}

func (f *fleet) remove(uid types.UID) {
	f.version++
	delete(f.stored, uid)
	f.events = append(f.events, bindingEvent{uid: uid, version: f.version})
}

// setLimit changes the quota. Requests that were admitted before may still be stored.
func (f *fleet) setLimit(limit int64) {
	largest := map[types.UID]int64{}
	for uid, each := range f.stored {
		largest[uid] = each.cpu
	}
	for _, each := range f.requests {
		largest[each.uid] = max(largest[each.uid], each.cpu)
	}
	var peak int64
	for _, cpu := range largest {
		peak += cpu
	}
	f.limit, f.bound = limit, max(limit, peak)
}

// advance lets time pass. Requests that exceed their time limit fail.
func (f *fleet) advance(by time.Duration) {
	f.now = f.now.Add(by)
	f.requests = slices.DeleteFunc(f.requests, func(each inFlight) bool { return !f.now.Before(each.deadline) })
	if by >= time.Second {
		// A watch that is delayed by more than a request takes would be restarted.
		for i := range f.admissions {
			f.admissions[i] = len(f.events)
		}
	}
}

// settle ends all requests and lets all admissions see all events.
func (f *fleet) settle() {
	f.requests = nil
	f.advance(ReservationLifetime + time.Second)
	f.bound = max(f.limit, f.usage())
}

func (f *fleet) uids() []types.UID { return slices.Sorted(maps.Keys(f.stored)) }

// step takes a random step.
func (f *fleet) step(draw *rand.Rand) {
	admission, cpu := draw.IntN(len(f.admissions)), int64(draw.IntN(7))
	switch steps := []string{
		"create", "create", "scale", "scale", "finish", "finish", "finish", "delete", "observe", "observe", "restart", "pass time", "limit", "settle",
	}; steps[draw.IntN(len(steps))] {
	case "create":
		f.created++
		_ = f.admit(admission, types.UID(fmt.Sprintf("b%d", f.created)), cpu)
	case "scale":
		if uids := f.uids(); len(uids) > 0 {
			_ = f.admit(admission, uids[draw.IntN(len(uids))], cpu)
		}
	case "finish":
		if len(f.requests) > 0 {
			f.finish(draw.IntN(len(f.requests)), draw.IntN(4) == 0)
		}
	case "delete":
		if uids := f.uids(); len(uids) > 0 {
			f.remove(uids[draw.IntN(len(uids))])
		}
	case "observe":
		f.admissions[admission] = min(f.admissions[admission]+1+draw.IntN(4), len(f.events))
	case "restart": // the restarted admission lists all bindings
		f.admissions[admission] = len(f.events)
	case "pass time":
		f.advance(time.Duration(draw.IntN(70_000)) * time.Millisecond)
	case "limit":
		f.setLimit(int64(draw.IntN(20)))
	case "settle":
		f.settle()
	}
}

// TestUsageNeverExceedsTheLimit requires that no interleaving of requests, failures, deletions, delayed
// watches and restarts exceeds a limit, and that at rest exactly the unused quota can be requested.
func TestUsageNeverExceedsTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Numbers that rapid draws are mostly small, so few runs would contain several large requests.
		draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)) //nolint:gosec // not for security
		f := &fleet{
			limit: 10, bound: 10, stored: map[types.UID]storedBinding{}, now: time.Unix(1000, 0),
			admissions: make([]int, 1+draw.IntN(3)),
		}
		for range 1000 {
			f.step(draw)
			if usage := f.usage(); usage > f.bound {
				t.Fatalf("%d CPUs are used, at most %d may be", usage, f.bound)
			}
		}
		f.settle()
		free := max(f.limit-f.usage(), 0)
		if err := f.admit(0, "one-too-many", free+1); err == nil {
			t.Fatalf("at rest %d CPUs are free, but %d were admitted", free, free+1)
		}
		if err := f.admit(0, "exactly-the-rest", free); err != nil {
			t.Fatalf("at rest %d CPUs are free, but they were refused: %v", free, err)
		}
	})
}
