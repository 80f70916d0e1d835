package console

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Output formats. The default "" is a table.
const (
	Wide = "wide"
	Name = "name"
	JSON = "json"
	YAML = "yaml"
)

var formats = []string{JSON, YAML, Name, Wide}

// Format is the value of the flag --output.
type Format string

// AddFlag adds the flag to a command.
func (f *Format) AddFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "format of the output: "+strings.Join(formats, ", ")+"; a table if empty")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the format.
func (f *Format) String() string { return string(*f) }

// Type returns the name of the type in help.
func (f *Format) Type() string { return "string" }

// Set parses one of the formats.
func (f *Format) Set(text string) error {
	if text != "" && !slices.Contains(formats, text) {
		return fmt.Errorf("unsupported format %q: use %s", text, strings.Join(formats, ", "))
	}
	*f = Format(text)
	return nil
}

// Output is one result in all formats.
type Output struct {
	// Header and Rows are the table. NarrowColumns is the number of columns in the default table; the wide table has all
	// columns. 0 means that the default table has all columns too.
	Header        []string
	Rows          [][]string
	NarrowColumns int
	// Names are the lines of --output=name.
	Names []string
	// Object is the value for JSON and YAML.
	Object any
	// ColumnGap is the number of spaces between columns.
	ColumnGap int
}

// Print writes the result in the format.
func (f *Format) Print(out io.Writer, result Output) error {
	switch *f {
	case JSON:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "    ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(result.Object)
	case YAML:
		text, err := yaml.Marshal(result.Object)
		if err != nil {
			return fmt.Errorf("encoding YAML: %w", err)
		}
		_, err = out.Write(text)
		return err
	case Name:
		for _, name := range result.Names {
			if _, err := fmt.Fprintln(out, name); err != nil {
				return err
			}
		}
		return nil
	}
	return result.printTable(out, *f == Wide)
}

// IsTable reports whether the format is a table.
func (f *Format) IsTable() bool { return *f == "" || *f == Wide }

func (o Output) printTable(out io.Writer, wide bool) error {
	table := tabwriter.NewWriter(out, 0, 0, o.ColumnGap, ' ', 0)
	for _, row := range append([][]string{o.Header}, o.Rows...) {
		if !wide && o.NarrowColumns > 0 {
			row = row[:o.NarrowColumns]
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

// OrNone returns text, or <none> for an empty table cell.
func OrNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
