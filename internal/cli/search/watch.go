package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/console"
)

// watchResults prints the matches and their changes until the user interrupts it.
func (o *options) watchResults(ctx context.Context) error {
	client, err := o.client(true)
	if err != nil {
		return err
	}
	stream, err := o.openWatch(ctx, client)
	if err != nil {
		return err
	}
	defer stream.Close()
	printer := o.newWatchPrinter()
	for decoder := json.NewDecoder(stream); ; {
		kind, result, err := readEvent(decoder)
		switch {
		case ctx.Err() != nil:
			return nil // the user ended the watch
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%s ended the watch; start it again", addonName)
		case err != nil:
			return err
		}
		if err := printer.printEvent(kind, result); err != nil {
			return err
		}
	}
}

// watchPrinter prints changes one after another.
type watchPrinter struct {
	format console.Format
	out    io.Writer
	// table aligns the rows. It remembers the widths of the columns.
	table interface {
		io.Writer
		Flush() error
	}
	hasHeader bool
	width     int
}

func (o *options) newWatchPrinter() *watchPrinter {
	return &watchPrinter{
		format: o.format, out: o.Program.Out, table: printers.GetNewTabWriter(o.Program.Out), width: o.terminalWidth(),
	}
}

// printEvent prints one change. JSON has one line for each change, and YAML one document.
func (w *watchPrinter) printEvent(kind watch.EventType, result *searchv1alpha1.SearchResult) error {
	event := map[string]any{"type": kind, "object": result}
	switch w.format {
	case console.JSON:
		encoder := json.NewEncoder(w.out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(event)
	case console.YAML:
		text, err := yaml.Marshal(event)
		if err != nil {
			return fmt.Errorf("encoding YAML: %w", err)
		}
		_, err = fmt.Fprintf(w.out, "---\n%s", text)
		return err
	case console.Name:
		_, err := fmt.Fprintln(w.out, uniqueName(result))
		return err
	}
	return w.printRow(kind, result)
}

func (w *watchPrinter) printRow(kind watch.EventType, result *searchv1alpha1.SearchResult) error {
	isWide := w.format == console.Wide
	if !w.hasHeader {
		w.hasHeader = true
		fmt.Fprintln(w.table, strings.Join(append([]string{"EVENT"}, tableHeader(isWide)...), "\t"))
	}
	cells := append([]string{string(kind)}, newRow(result, time.Now(), isWide)...)
	if !isWide {
		truncateLast([][]string{cells}, w.width, len("   "))
	}
	fmt.Fprintln(w.table, strings.Join(cells, "\t"))
	return w.table.Flush()
}
