package cluster

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// MaxResourceNames is the maximum number of resources in one list. It also limits each list in a
	// cluster's summary.
	MaxResourceNames = 256
	// maxResourceNameBytes is the maximum length of a resource name, in bytes: a prefix, a slash and a
	// name.
	maxResourceNameBytes = 253 + 1 + 63
)

// ErrTooManyResourceNames is returned for a resource list that has too many names or a name that is too
// long.
var ErrTooManyResourceNames = errors.New("a list of resources with more than 256 names, or with a name of more than 317 bytes")

// ResourceListPool is a pool of the resource lists of objects of one kind. The pool contains each
// distinct resource list once, as long as it is referenced. It has two sizes: HeldSize covers all
// resource lists in the pool, and ListedSize only those of the objects that are currently being listed
// from the API server. While objects are being listed, only ListedSize is limited, so that resource
// lists from an earlier list of objects do not make the next list exceed a limit.
type ResourceListPool struct {
	byText     map[string]*InternedResources
	heldTotals listTotals
	// current counts the resource lists that Intern returned since BeginList. It is nil if no list of
	// objects is being read.
	current *listedTotals
}

// PoolSize is the size of several resource lists.
type PoolSize struct {
	// Bytes is the total length of the distinct lists' texts. Names is the number of distinct
	// resources.
	Bytes, Names int
}

// listTotals contains the total size of lists, and the number of lists that contain each resource.
type listTotals struct {
	bytes int
	names map[corev1.ResourceName]int
}

type listedTotals struct {
	listTotals

	texts map[string]bool
}

func newLists() ResourceListPool {
	return ResourceListPool{byText: map[string]*InternedResources{}, heldTotals: listTotals{names: map[corev1.ResourceName]int{}}}
}

func (l *listTotals) add(a *InternedResources) {
	l.bytes += len(a.text)
	for i := range a.entries {
		l.names[a.entries[i].name]++
	}
}

func (l *listTotals) remove(a *InternedResources) {
	l.bytes -= len(a.text)
	for i := range a.entries {
		name := a.entries[i].name
		if l.names[name]--; l.names[name] == 0 {
			delete(l.names, name)
		}
	}
}

func (l *listTotals) size() PoolSize { return PoolSize{Bytes: l.bytes, Names: len(l.names)} }

// BeginList must be called before a list of objects is read.
func (r *ResourceListPool) BeginList() {
	r.current = &listedTotals{listTotals: listTotals{names: map[corev1.ResourceName]int{}}, texts: map[string]bool{}}
}

// EndList must be called after a list of objects was read. It removes resource lists that nothing
// references.
func (r *ResourceListPool) EndList() {
	r.current = nil
	for _, a := range r.byText {
		if a.refs == 0 {
			r.drop(a)
		}
	}
}

// HeldSize returns the size of all lists in the pool.
func (r *ResourceListPool) HeldSize() PoolSize { return r.heldTotals.size() }

// ListedSize returns the size of the resource lists that Intern returned since BeginList.
func (r *ResourceListPool) ListedSize() PoolSize {
	if r.current == nil {
		return PoolSize{}
	}
	return r.current.size()
}

// Intern returns the pool's entry for a resource list. Equal lists share one entry. It returns
// ErrTooManyResourceNames if the list exceeds the limits.
func (r *ResourceListPool) Intern(list corev1.ResourceList) (*InternedResources, error) {
	if len(list) > MaxResourceNames {
		return nil, ErrTooManyResourceNames
	}
	for name := range list {
		if len(name) > maxResourceNameBytes {
			return nil, ErrTooManyResourceNames
		}
	}
	made := newAmounts(list)
	if known, ok := r.byText[made.text]; ok {
		made = known
	}
	r.insert(made)
	if r.current != nil && !r.current.texts[made.text] {
		r.current.texts[made.text] = true
		r.current.add(made)
	}
	return made, nil
}

// insert adds a list unless the pool contains an equal list.
func (r *ResourceListPool) insert(a *InternedResources) {
	if r.byText[a.text] == nil {
		r.byText[a.text] = a
		r.heldTotals.add(a)
	}
}

func (r *ResourceListPool) drop(a *InternedResources) {
	delete(r.byText, a.text)
	r.heldTotals.remove(a)
}

// acquire adds a reference to a resource list. EndList may have removed the list since Intern
// returned it, so acquire inserts it again.
func (r *ResourceListPool) acquire(a *InternedResources) {
	r.insert(a)
	r.byText[a.text] = a
	a.refs++
}

func (r *ResourceListPool) release(a *InternedResources) {
	if a.refs--; a.refs == 0 && r.byText[a.text] == a {
		r.drop(a)
	}
}

func newAmounts(list corev1.ResourceList) *InternedResources {
	made := &InternedResources{entries: make([]resourceAmount, 0, len(list))}
	for name, quantity := range list {
		made.entries = append(made.entries, resourceAmount{name: name, quantity: quantity.DeepCopy()})
	}
	slices.SortFunc(made.entries, func(a, b resourceAmount) int { return strings.Compare(string(a.name), string(b.name)) })
	var text strings.Builder
	for i := range made.entries {
		text.WriteString(string(made.entries[i].name))
		text.WriteByte('=')
		text.WriteString(made.entries[i].quantity.String())
		text.WriteByte(' ')
	}
	made.text = text.String()
	return made
}
