package cluster

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// MaxResourceNames is the maximum number of resources in one list. Each list in the summary of
	// a cluster has the same limit.
	MaxResourceNames = 256
	// maxResourceNameBytes is the maximum length of the name of a resource, in bytes: a prefix, a
	// slash and a name.
	maxResourceNameBytes = 253 + 1 + 63
)

// ErrTooManyResourceNames is the error for a list of resources with too many names, or with a name
// that is too long.
var ErrTooManyResourceNames = errors.New("a list of resources with more than 256 names, or with a name of more than 317 bytes")

// ResourceListPool is a pool of the resource lists of objects of one kind. The pool holds each
// distinct resource list once, as long as it is referenced. It keeps two counts: HeldSize covers
// all resource lists in the pool, and ListedSize covers those of the objects that are being listed
// from the API server. Resource lists from an earlier list of objects must not make the next list
// exceed a limit.
type ResourceListPool struct {
	byText     map[string]*InternedResources
	heldTotals listTotals
	// current counts the resource lists that Intern returned since BeginList. It is nil if no list
	// of objects is being read.
	current *listedTotals
}

// PoolSize is the size of a number of resource lists.
type PoolSize struct {
	// Bytes is the total length of the texts of the different lists. Names is the number of
	// different resources.
	Bytes, Names int
}

// listTotals holds the size of lists, and the number of lists for each resource.
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

func (c *listTotals) add(a *InternedResources) {
	c.bytes += len(a.text)
	for i := range a.entries {
		c.names[a.entries[i].name]++
	}
}

func (c *listTotals) remove(a *InternedResources) {
	c.bytes -= len(a.text)
	for i := range a.entries {
		name := a.entries[i].name
		if c.names[name]--; c.names[name] == 0 {
			delete(c.names, name)
		}
	}
}

func (c *listTotals) size() PoolSize { return PoolSize{Bytes: c.bytes, Names: len(c.names)} }

// BeginList must be called before a list of objects is read.
func (l *ResourceListPool) BeginList() {
	l.current = &listedTotals{listTotals: listTotals{names: map[corev1.ResourceName]int{}}, texts: map[string]bool{}}
}

// EndList must be called after a list of objects was read. It removes resource lists that nothing
// references.
func (l *ResourceListPool) EndList() {
	l.current = nil
	for _, a := range l.byText {
		if a.refs == 0 {
			l.drop(a)
		}
	}
}

// HeldSize returns the size of all lists in the pool.
func (l *ResourceListPool) HeldSize() PoolSize { return l.heldTotals.size() }

// ListedSize returns the size of the resource lists that Intern returned since BeginList.
func (l *ResourceListPool) ListedSize() PoolSize {
	if l.current == nil {
		return PoolSize{}
	}
	return l.current.size()
}

// Intern returns the entry of the pool for a list of resources. Equal lists share one entry.
func (l *ResourceListPool) Intern(list corev1.ResourceList) (*InternedResources, error) {
	if len(list) > MaxResourceNames {
		return nil, ErrTooManyResourceNames
	}
	for name := range list {
		if len(name) > maxResourceNameBytes {
			return nil, ErrTooManyResourceNames
		}
	}
	made := newAmounts(list)
	if known, ok := l.byText[made.text]; ok {
		made = known
	}
	l.insert(made)
	if l.current != nil && !l.current.texts[made.text] {
		l.current.texts[made.text] = true
		l.current.add(made)
	}
	return made, nil
}

// insert adds a list unless the pool has an equal list.
func (l *ResourceListPool) insert(a *InternedResources) {
	if l.byText[a.text] == nil {
		l.byText[a.text] = a
		l.heldTotals.add(a)
	}
}

func (l *ResourceListPool) drop(a *InternedResources) {
	delete(l.byText, a.text)
	l.heldTotals.remove(a)
}

// acquire adds a reference to a resource list. EndList may have removed the list since Intern
// returned it, so acquire inserts it again.
func (l *ResourceListPool) acquire(a *InternedResources) {
	l.insert(a)
	l.byText[a.text] = a
	a.refs++
}

func (l *ResourceListPool) release(a *InternedResources) {
	if a.refs--; a.refs == 0 && l.byText[a.text] == a {
		l.drop(a)
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
