package quota

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// ReservationLifetime is how long a reservation counts whose request never becomes visible, because it
// failed after it was admitted. It is the default time limit of a request to the API server.
const ReservationLifetime = time.Minute

// MaxReservations is the maximum number of admitted requests of a namespace that are not visible yet.
const MaxReservations = 500

// Ledger records the admitted requests of a namespace. All replicas of the admission share it.
type Ledger struct {
	// Reservations are the admitted requests. They may be settled or expired.
	Reservations []Reservation `json:"reservations,omitempty"`
	// SettledAt is the newest resource version of a binding that settled a reservation that is not in
	// the ledger any more. Until SettledExpires, a replica whose watch has not reached SettledAt must
	// not decide, because it sees neither the reservation nor the usage.
	SettledAt      string       `json:"settledAt,omitempty"`
	SettledExpires *metav1.Time `json:"settledExpires,omitempty"`
}

// Merge returns a ledger with the reservations of both ledgers.
func (l Ledger) Merge(other Ledger) Ledger {
	if IsOlder(l.SettledAt, other.SettledAt) {
		l.SettledAt, l.SettledExpires = other.SettledAt, other.SettledExpires
	}
	l.Reservations = slices.Concat(l.Reservations, other.Reservations)
	return l
}

// Reservation is the usage of an admitted request that may not be visible yet.
type Reservation struct {
	// UID identifies the binding.
	UID types.UID `json:"uid"`
	// Base is the resource version of the binding that the request replaces. It is empty if the
	// request creates the binding.
	Base string `json:"base,omitempty"`
	// Usage is the usage of the binding after the request.
	Usage corev1.ResourceList `json:"usage"`
	// Expires is when the reservation ends if its request does not become visible.
	Expires metav1.Time `json:"expires"`
}

// StoredUsage is the usage of a binding at a resource version. A deleted binding has no usage.
type StoredUsage struct {
	ResourceVersion string
	Usage           corev1.ResourceList
}

// Limit is a quota of the namespace.
type Limit struct {
	// QuotaName is the name of the FederatedResourceQuota, and Overall its spec.overall.
	QuotaName string
	Overall   corev1.ResourceList
}

// Namespace contains what a decision about one namespace depends on.
type Namespace struct {
	Name string
	// Limits are the quotas in the order in which they are checked.
	Limits []Limit
	// Stored are the visible usages. They include bindings that were deleted recently, because these
	// settle the reservations of the bindings.
	Stored map[types.UID]StoredUsage
	// Version is the newest resource version of a visible binding in any namespace.
	Version string
	Ledger  Ledger
}

// Request is a request that changes the usage of a binding.
type Request struct {
	// UID identifies the binding. Base is its resource version before the request, or empty if the
	// request creates the binding.
	UID  types.UID
	Base string
	// Before and After are the usages of the binding.
	Before, After corev1.ResourceList
}

// UsesMore reports whether the request uses more of any resource than before.
func (r Request) UsesMore() bool {
	for name, after := range r.After {
		if after.Cmp(r.Before[name]) > 0 {
			return true
		}
	}
	return false
}

// ExceededError means that a request would make the usage of a namespace exceed a quota.
type ExceededError struct {
	Namespace, QuotaName string
	Resource             corev1.ResourceName
	// Requested is the usage of the whole namespace after the request.
	Requested, Limit resource.Quantity
}

// Error returns the message that clients of Karmada know.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("FederatedResourceQuota(%s/%s) exceeded for resource %s: requested sum %s, limit %s.",
		e.Namespace, e.QuotaName, e.Resource, e.Requested.String(), e.Limit.String())
}

// NeedsRoom reports whether the request uses more of a limited resource than before.
func (n *Namespace) NeedsRoom(request Request) bool {
	return slices.ContainsFunc(n.Limits, func(limit Limit) bool { return len(growingResources(limit, request)) > 0 })
}

// IsExceeded reports whether the API server refused a request because of a quota.
func IsExceeded(err error) bool {
	return string(apierrors.ReasonForError(err)) == workv1alpha2.BindingReasonQuotaExceeded
}

// ErrBehind means that the visible usages are too old for a decision, and ErrTooManyReservations that
// the namespace has MaxReservations. In both cases the request succeeds later.
var (
	ErrBehind              = errors.New("the usage of the namespace is not up to date yet")
	ErrTooManyReservations = fmt.Errorf("the namespace already has %d admitted requests that are not stored yet", MaxReservations)
)

// Admit returns the ledger with which the namespace admits the request. It returns an *ExceededError,
// ErrBehind or ErrTooManyReservations if the namespace does not admit the request. Settled and expired
// reservations are dropped from the ledger.
func (n *Namespace) Admit(request Request, now time.Time) (Ledger, error) {
	if n.isBehind(now) {
		return Ledger{}, ErrBehind
	}
	ledger := n.openLedger(now)
	if len(ledger.Reservations) >= MaxReservations {
		return Ledger{}, ErrTooManyReservations
	}
	others := n.usageOfOthers(request.UID, ledger.Reservations)
	for _, limit := range n.Limits {
		for _, name := range growingResources(limit, request) {
			sum, maximum := others[name].DeepCopy(), limit.Overall[name]
			sum.Add(request.After[name])
			if sum.Cmp(maximum) > 0 {
				return Ledger{}, &ExceededError{Namespace: n.Name, QuotaName: limit.QuotaName, Resource: name, Requested: sum, Limit: maximum}
			}
		}
	}
	ledger.Reservations = append(ledger.Reservations, Reservation{
		UID: request.UID, Base: request.Base, Usage: request.After, Expires: metav1.NewTime(now.Add(ReservationLifetime)),
	})
	return ledger, nil
}

// isBehind reports whether the visible usages may lack a request whose reservation was dropped.
func (n *Namespace) isBehind(now time.Time) bool {
	return n.Ledger.SettledExpires != nil && isInForce(*n.Ledger.SettledExpires, now) && IsOlder(n.Version, n.Ledger.SettledAt)
}

// growingResources returns the resources of the limit of which the request uses more, sorted.
func growingResources(limit Limit, request Request) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name, after := range request.After {
		if _, isLimited := limit.Overall[name]; isLimited && after.Cmp(request.Before[name]) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// openLedger returns the ledger with only those reservations that still count: their requests may be
// stored but are not visible yet.
func (n *Namespace) openLedger(now time.Time) Ledger {
	open := Ledger{SettledAt: n.Ledger.SettledAt, SettledExpires: n.Ledger.SettledExpires}
	for _, each := range n.Ledger.Reservations {
		stored := n.Stored[each.UID]
		switch {
		case !isInForce(each.Expires, now):
		case IsOlder(each.Base, stored.ResourceVersion):
			if open.SettledAt == "" || IsOlder(open.SettledAt, stored.ResourceVersion) {
				open.SettledAt = stored.ResourceVersion
			}
			open.SettledExpires = &metav1.Time{Time: now.Add(ReservationLifetime)}
		default:
			open.Reservations = append(open.Reservations, each)
		}
	}
	return open
}

// isInForce reports whether an entry of the ledger has not expired. An entry that expires much later than any
// admission sets, even with a wrong clock, is invalid and has expired too.
func isInForce(expires metav1.Time, now time.Time) bool {
	return now.Before(expires.Time) && expires.Time.Before(now.Add(2*ReservationLifetime))
}

// IsOlder reports whether one resource version is older than another. The empty version is older than
// every other version. Versions that cannot be compared are not older.
//
// A reservation is settled when its base version is older than the visible version: the API server stores a
// request only if the binding still has the base version. A newer visible version therefore contains the
// request, or proves that the request failed.
func IsOlder(version, than string) bool {
	if version == "" || than == "" {
		return version == "" && than != ""
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// usageOfOthers returns the usage of all bindings except one. The usage of a binding with open
// reservations is the maximum that it may have.
func (n *Namespace) usageOfOthers(except types.UID, open []Reservation) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for uid, stored := range n.Stored {
		if uid != except {
			AddUsage(sum, stored.Usage)
		}
	}
	reserved := map[types.UID]corev1.ResourceList{}
	for _, each := range open {
		if each.UID != except {
			reserved[each.UID] = maxUsage(reserved[each.UID], each.Usage)
		}
	}
	for uid, usage := range reserved {
		for name, quantity := range usage {
			if missing := quantity.DeepCopy(); subtractFrom(&missing, n.Stored[uid].Usage[name]) > 0 {
				addQuantity(sum, name, missing)
			}
		}
	}
	return sum
}

// subtractFrom subtracts a quantity in place and returns the sign of the result.
func subtractFrom(quantity *resource.Quantity, other resource.Quantity) int {
	quantity.Sub(other)
	return quantity.Sign()
}

func addQuantity(sum corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	total, ok := sum[name]
	if !ok {
		total = resource.Quantity{Format: quantity.Format}
	}
	total.Add(quantity)
	sum[name] = total
}

// maxUsage returns the larger quantity of each resource.
func maxUsage(a, b corev1.ResourceList) corev1.ResourceList {
	larger := maps.Clone(a)
	if larger == nil {
		larger = corev1.ResourceList{}
	}
	for name, quantity := range b {
		if current, ok := larger[name]; !ok || quantity.Cmp(current) > 0 {
			larger[name] = quantity
		}
	}
	return larger
}
