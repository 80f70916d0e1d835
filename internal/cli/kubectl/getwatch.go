package kubectl

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

	"karmada.io/karmada/internal/cli/command"
)

// watchEvent is an event of one target's watch, or the error that ended the watch.
type watchEvent struct {
	watch *targetWatch
	kind  watch.EventType
	// object is the object of the event. It is nil at the end of the watch.
	object runtime.Object
	err    error
}

// targetWatch is the watch of one target.
type targetWatch struct {
	target         command.Target
	mapping        *meta.RESTMapping
	layout         tableLayout
	initialObjects []runtime.Object
	events         watch.Interface
	// skipsInitial is true if the watch starts with an event for the listed object, which must be skipped.
	skipsInitial bool
}

// watchTargets prints the existing objects and then each change, until ctx ends or all watches
// have ended.
func (o *getOptions) watchTargets(ctx context.Context, targets []command.Target, args []string) error {
	if *o.printFlags.HumanReadableFlags.SortBy != "" {
		o.Program.Messagef("warning: --sort-by has no effect on changes")
	}
	watches, failed := o.openWatches(ctx, targets, args)
	errs := command.MergeErrors(targets, failed)
	for _, s := range watches {
		defer s.events.Stop()
	}
	if len(watches) == 0 || ctx.Err() != nil {
		return errors.Join(errs...)
	}
	// Print the errors before the watch, so that the user knows which targets are not watched.
	for _, err := range errs {
		o.Program.Messagef("error: %s", err)
	}
	printer, err := o.newPrinter(watches[0].mapping, false)
	if err != nil {
		return err
	}
	// All targets share one writer, so that the columns have the same width.
	output := &watchPrinter{getOptions: o, printer: printer, out: printers.GetNewTabWriter(o.Program.Out)}
	if err := output.printInitial(watches); err != nil {
		return err
	}
	if err := errors.Join(output.printEvents(ctx, watches)...); err != nil || len(errs) == 0 {
		return err
	}
	unwatched := slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	return fmt.Errorf("%d of %d clusters could not be watched", len(unwatched), len(targets))
}

// openWatches opens a watch in each target, and returns the errors of the failed targets. If one target fails, the others are
// still watched. A target without the object has not failed if another target has the object.
func (o *getOptions) openWatches(ctx context.Context, targets []command.Target, args []string) (watches []*targetWatch, failed []error) {
	opened, failed := command.QueryAll(ctx, targets, o.timeout, func(ctx context.Context, target command.Target) (*targetWatch, error) {
		return o.openWatch(ctx, target, args)
	})
	for i, err := range failed {
		if err == nil {
			watches = append(watches, opened[i])
		}
	}
	for i, err := range failed {
		if err != nil && len(watches) > 0 && isNotFound(err) {
			o.Program.Messagef("%s is not watched: %s", targets[i], err)
			failed[i] = nil
		}
	}
	return watches, failed
}

// openWatch lists the objects of one kind and starts a watch.
func (o *getOptions) openWatch(ctx context.Context, target command.Target, args []string) (*targetWatch, error) {
	// Set no request timeout, because it would end the watch.
	factory := o.NewFactory(&target, 0)
	namespace, err := verifyReachable(ctx, factory, target)
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
		return nil, errors.New("there are no objects to watch")
	}
	s, err := o.newTargetWatch(target, infos)
	if err != nil {
		return nil, err
	}
	// A watch of one object from version 0 starts with the current state of the object.
	version := "0"
	if !result.TargetsSingleItems() {
		version = infos[len(infos)-1].ResourceVersion
	}
	s.skipsInitial = result.TargetsSingleItems()
	if s.events, err = result.Watch(version); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		s.events.Stop() // the caller no longer waits for the watch
	}
	return s, ctx.Err()
}

// newTargetWatch returns the watch of the listed objects. The watch is not open yet.
func (o *getOptions) newTargetWatch(target command.Target, listed []*resource.Info) (*targetWatch, error) {
	mapping := listed[0].Mapping
	s := &targetWatch{target: target, mapping: mapping, layout: tableLayout{hidesAdoption: isPod(mapping), isWatch: true}}
	for _, info := range listed {
		s.initialObjects = append(s.initialObjects, info.Object)
	}
	if !o.isTableOutput() {
		return s, nil
	}
	table, err := parseTable(s.initialObjects[0])
	if err != nil {
		return nil, fmt.Errorf("reading the table of %s from %s: %w", mapping.Resource.Resource, target.Name(), err)
	}
	s.layout.columns = table.ColumnDefinitions
	return s, nil
}

// watchPrinter prints the events of all watches.
type watchPrinter struct {
	*getOptions
	printer printers.ResourcePrinter
	out     interface {
		io.Writer
		Flush() error
	}
}

func (w *watchPrinter) printInitial(watches []*targetWatch) error {
	if w.watchOnly {
		return nil
	}
	for _, from := range watches {
		for _, object := range from.initialObjects {
			if err := w.printEvent(watchEvent{watch: from, kind: watch.Added, object: object}); err != nil {
				return err
			}
		}
	}
	return w.out.Flush()
}

func (w *watchPrinter) printEvents(ctx context.Context, watches []*targetWatch) (errs []error) {
	all := make(chan watchEvent)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, from := range watches {
		go from.forward(ctx, all)
	}
	for open := len(watches); open > 0; {
		select {
		case <-ctx.Done():
			return errs
		case next := <-all:
			if next.err != nil {
				errs = append(errs, next.watch.target.PrefixError(next.err))
			}
			if next.object == nil {
				if open--; open > 0 {
					// Without this message, the output would look complete although one target is
					// missing.
					w.Program.Messagef("%s is no longer watched: its watch has ended", next.watch.target)
				}
				continue
			}
			if err := w.printEvent(next); err != nil {
				return append(errs, err)
			}
			if err := w.out.Flush(); err != nil {
				return append(errs, err)
			}
		}
	}
	return errs
}

// forward sends the events of one target to the channel all.
func (t *targetWatch) forward(ctx context.Context, all chan<- watchEvent) {
	send := func(c watchEvent) bool {
		c.watch = t
		select {
		case all <- c:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for event := range t.events.ResultChan() {
		if event.Type == watch.Error {
			send(watchEvent{err: apierrors.FromObject(event.Object)})
			return
		}
		if t.skipsInitial && event.Type == watch.Added {
			t.skipsInitial = false
			continue
		}
		if !send(watchEvent{kind: event.Type, object: event.Object}) {
			return
		}
	}
	send(watchEvent{})
}

func (w *watchPrinter) printEvent(c watchEvent) error {
	if w.isTableOutput() {
		table, err := parseTable(c.object)
		if err != nil {
			return fmt.Errorf("reading a change from %s: %w", c.watch.target.Name(), err)
		}
		c.watch.layout.addColumns(table, c.watch.target)
		return w.printObject(c.kind, table)
	}
	items, err := itemsOf(c.object)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := w.printObject(c.kind, annotateCluster(item, c.watch.target)); err != nil {
			return err
		}
	}
	return nil
}

func (w *watchPrinter) printObject(kind watch.EventType, object runtime.Object) error {
	if w.outputWatchEvents {
		object = &metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Object: object}}
		if !w.isTableOutput() {
			// The printers of JSON and YAML need the kind.
			object = w.newEventObject(kind, object.(*metav1.WatchEvent))
		}
	}
	return w.printer.PrintObj(object, w.out)
}

// newEventObject returns an event as an object with a kind, for output formats other than tables.
func (w *watchPrinter) newEventObject(kind watch.EventType, event *metav1.WatchEvent) runtime.Object {
	content, ok := event.Object.Object.(*unstructured.Unstructured)
	if !ok {
		return event
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "WatchEvent", "type": string(kind), "object": content.Object,
	}}
}
