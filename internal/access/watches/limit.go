package watches

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"karmada.io/karmada/internal/access/member/bounds"
)

// limitedSink passes on only the objects that a limit admits.
type limitedSink struct {
	Sink
	limit *bounds.CacheLimit
}

// BeginList implements Sink, as do the methods below.
func (l *limitedSink) BeginList() {
	l.limit.BeginList()
	l.Sink.BeginList()
}

// AddListed passes on a listed object that is admitted.
func (l *limitedSink) AddListed(object runtime.Object) error {
	isAdmitted, err := l.limit.AdmitListed(object)
	if err != nil || !isAdmitted {
		return err
	}
	return l.Sink.AddListed(object)
}

// EndList ends the list.
func (l *limitedSink) EndList(err error) {
	l.limit.EndList(err)
	l.Sink.EndList(err)
}

// Apply passes on an event that is admitted.
func (l *limitedSink) Apply(event watch.Event) error {
	if event.Type == watch.Bookmark {
		return l.Sink.Apply(event)
	}
	event, isAdmitted, err := l.limit.AdmitEvent(event)
	if err != nil || !isAdmitted {
		return err
	}
	return l.Sink.Apply(event)
}
