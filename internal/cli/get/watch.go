package get

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
)

// change is what happened somewhere, or why no more will be heard from there.
type change struct {
	place place
	kind  watch.EventType
	// object is nil at the end of a watch.
	object runtime.Object
	err    error
}

// stream is the watch of one place.
type stream struct {
	place   place
	mapping *meta.RESTMapping
	first   []runtime.Object
	changes watch.Interface
	// skipFirst tells that the watch begins with what first holds, or with what is
	// not wanted.
	skipFirst bool
}

// follow shows what is there and then each change, until ctx ends or nobody can
// be watched any more.
func (o *options) follow(ctx context.Context, places []place, args []string) error {
	if *o.print.HumanReadableFlags.SortBy != "" {
		o.program.Tell("warning: --sort-by has no effect on changes")
	}
	var errs []error
	var streams []*stream
	for _, where := range places {
		s, err := o.open(ctx, where, args)
		if err != nil {
			errs = append(errs, failures([]answer{{place: where, err: err}})...)
			continue
		}
		defer s.changes.Stop()
		streams = append(streams, s)
	}
	if len(streams) == 0 {
		return errors.Join(errs...)
	}
	printer, err := o.printer(streams[0].mapping, false)
	if err != nil {
		return err
	}
	// One writer for all, which remembers how wide the columns were.
	show := &shown{options: o, printer: printer, out: printers.GetNewTabWriter(o.program.Out)}
	if err := show.firsts(streams); err != nil {
		return err
	}
	return errors.Join(append(errs, show.changes(ctx, streams)...)...)
}

// open lists and starts to watch one kind of objects.
func (o *options) open(ctx context.Context, where place, args []string) (*stream, error) {
	factory := o.factory(where)
	namespace, err := reach(ctx, factory, where)
	if err != nil {
		return nil, err
	}
	result := o.request(factory, namespace, args).SingleResourceType().Do()
	if err := result.Err(); err != nil {
		return nil, err
	}
	infos, err := result.Infos()
	if err != nil {
		return nil, err
	}
	if len(infos) == 0 {
		return nil, errors.New("there is nothing to watch")
	}
	s := &stream{place: where, mapping: infos[0].Mapping}
	// From 0 a watch begins with the present state of the one object.
	version := "0"
	if !result.TargetsSingleItems() {
		version = infos[len(infos)-1].ResourceVersion
	}
	s.skipFirst = result.TargetsSingleItems()
	for _, info := range infos {
		s.first = append(s.first, info.Object)
	}
	s.changes, err = result.Watch(version)
	return s, err
}

// shown is the output of a watch.
type shown struct {
	*options
	printer printers.ResourcePrinter
	out     interface {
		io.Writer
		Flush() error
	}
}

func (s *shown) firsts(streams []*stream) error {
	if s.watchOnly {
		return nil
	}
	for _, from := range streams {
		for _, object := range from.first {
			if err := s.print(change{place: from.place, kind: watch.Added, object: object}, from.mapping.GroupVersionKind.Kind); err != nil {
				return err
			}
		}
	}
	return s.out.Flush()
}

func (s *shown) changes(ctx context.Context, streams []*stream) (errs []error) {
	all := make(chan change)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, from := range streams {
		go from.forward(ctx, all)
	}
	for open := len(streams); open > 0; {
		select {
		case <-ctx.Done():
			return errs
		case next := <-all:
			if next.err != nil {
				errs = append(errs, failures([]answer{{place: next.place, err: next.err}})...)
			}
			if next.object == nil {
				open--
				continue
			}
			if err := s.print(next, streams[0].mapping.GroupVersionKind.Kind); err != nil {
				return append(errs, err)
			}
			if err := s.out.Flush(); err != nil {
				return append(errs, err)
			}
		}
	}
	return errs
}

// forward passes on the changes of one place.
func (f *stream) forward(ctx context.Context, all chan<- change) {
	send := func(c change) bool {
		c.place = f.place
		select {
		case all <- c:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for event := range f.changes.ResultChan() {
		if event.Type == watch.Error {
			send(change{err: apierrors.FromObject(event.Object)})
			return
		}
		if f.skipFirst && event.Type == watch.Added {
			f.skipFirst = false
			continue
		}
		if !send(change{kind: event.Type, object: event.Object}) {
			return
		}
	}
	send(change{})
}

func (s *shown) print(c change, kind string) error {
	object := c.object
	if s.table() {
		table, err := tableOf(object)
		if err != nil {
			return fmt.Errorf("reading a change from %s: %w", c.place.name, err)
		}
		addColumns(table, c.place, kind)
		object = table
		return s.printOne(c.kind, object)
	}
	items, err := itemsOf(object)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := s.printOne(c.kind, origin(item, c.place)); err != nil {
			return err
		}
	}
	return nil
}

func (s *shown) printOne(kind watch.EventType, object runtime.Object) error {
	if s.outputWatchEvents {
		object = &metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Object: object}}
		if !s.table() {
			// Printers of machine formats want the kind to be said.
			object = s.eventObject(kind, object.(*metav1.WatchEvent))
		}
	}
	return s.printer.PrintObj(object, s.out)
}

// eventObject is an event as other formats print it.
func (s *shown) eventObject(kind watch.EventType, event *metav1.WatchEvent) runtime.Object {
	content, ok := event.Object.Object.(*unstructured.Unstructured)
	if !ok {
		return event
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "WatchEvent", "type": string(kind), "object": content.Object,
	}}
}
