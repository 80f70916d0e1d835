package get

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"

	"karmada.io/karmada/internal/cli/place"
)

// change is what happened somewhere, or why no more will be heard from there.
type change struct {
	from *stream
	kind watch.EventType
	// object is nil at the end of a watch.
	object runtime.Object
	err    error
}

// stream is the watch of one place.
type stream struct {
	place   place.Place
	mapping *meta.RESTMapping
	form    layout
	first   []runtime.Object
	changes watch.Interface
	// skipFirst tells that the watch begins with what first holds, or with what is
	// not wanted.
	skipFirst bool
}

// follow shows what is there and then each change, until ctx ends or nobody can
// be watched any more.
func (o *options) follow(ctx context.Context, places []place.Place, args []string) error {
	if *o.print.HumanReadableFlags.SortBy != "" {
		o.Program.Tell("warning: --sort-by has no effect on changes")
	}
	streams, failed := o.openAll(ctx, places, args)
	errs := place.Failures(places, failed)
	for _, s := range streams {
		defer s.changes.Stop()
	}
	if len(streams) == 0 || ctx.Err() != nil {
		return errors.Join(errs...)
	}
	// Who waits for changes should know at once of whom none will come.
	for _, err := range errs {
		o.Program.Tell("error: %s", err)
	}
	printer, err := o.printer(streams[0].mapping, false)
	if err != nil {
		return err
	}
	// One writer for all, which remembers how wide the columns were.
	show := &shown{options: o, printer: printer, out: printers.GetNewTabWriter(o.Program.Out)}
	if err := show.firsts(streams); err != nil {
		return err
	}
	if err := errors.Join(show.changes(ctx, streams)...); err != nil || len(errs) == 0 {
		return err
	}
	unwatched := slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	return fmt.Errorf("%d of %d clusters could not be watched", len(unwatched), len(places))
}

// openAll opens the watches of all places and returns the error of each place. Those
// that cannot be watched, or do not answer in time, hide no other one. A place that
// lacks the object is no error when another one has it.
func (o *options) openAll(ctx context.Context, places []place.Place, args []string) (streams []*stream, failed []error) {
	opened, failed := place.AskAll(ctx, places, o.patience, func(ctx context.Context, where place.Place) (*stream, error) {
		return o.open(ctx, where, args)
	})
	for i, err := range failed {
		if err == nil {
			streams = append(streams, opened[i])
		}
	}
	for i, err := range failed {
		if err != nil && len(streams) > 0 && isAbsent(err) {
			o.Program.Tell("%s is not watched: %s", places[i], err)
			failed[i] = nil
		}
	}
	return streams, failed
}

// open lists and starts to watch one kind of objects.
func (o *options) open(ctx context.Context, where place.Place, args []string) (*stream, error) {
	// A limit on requests would end the watch.
	factory := o.Factory(&where, 0)
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
	s, err := o.newStream(where, infos)
	if err != nil {
		return nil, err
	}
	// From 0 a watch begins with the present state of the one object.
	version := "0"
	if !result.TargetsSingleItems() {
		version = infos[len(infos)-1].ResourceVersion
	}
	s.skipFirst = result.TargetsSingleItems()
	if s.changes, err = result.Watch(version); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		s.changes.Stop() // nobody waits for it any more
	}
	return s, ctx.Err()
}

// newStream is the watch of what was listed, before it is opened.
func (o *options) newStream(where place.Place, listed []*resource.Info) (*stream, error) {
	mapping := listed[0].Mapping
	s := &stream{place: where, mapping: mapping, form: layout{narrow: isPod(mapping), watched: true}}
	for _, info := range listed {
		s.first = append(s.first, info.Object)
	}
	if !o.table() {
		return s, nil
	}
	table, err := tableOf(s.first[0])
	if err != nil {
		return nil, err
	}
	s.form.columns = table.ColumnDefinitions
	return s, nil
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
			if err := s.print(change{from: from, kind: watch.Added, object: object}); err != nil {
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
				errs = append(errs, next.from.place.Prefix(next.err))
			}
			if next.object == nil {
				if open--; open > 0 {
					// The table goes on, and would look complete.
					s.Program.Tell("no more changes are heard of from %s: its watch has ended", next.from.place)
				}
				continue
			}
			if err := s.print(next); err != nil {
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
		c.from = f
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

func (s *shown) print(c change) error {
	if s.table() {
		table, err := tableOf(c.object)
		if err != nil {
			return fmt.Errorf("reading a change from %s: %w", c.from.place.Name(), err)
		}
		c.from.form.addColumns(table, c.from.place)
		return s.printOne(c.kind, table)
	}
	items, err := itemsOf(c.object)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := s.printOne(c.kind, origin(item, c.from.place)); err != nil {
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
