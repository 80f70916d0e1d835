package kubectl

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
)

// tableSection is one table of the output. It contains the rows of one kind with the same columns,
// from all targets.
type tableSection struct {
	mapping *meta.RESTMapping
	columns string
	table   *metav1.Table
}

// newSections merges the tables of all targets by kind, in the requested order. A member with another Kubernetes version may
// return other columns; its rows then form a separate section.
func newSections(results []targetResult) ([]*tableSection, error) {
	var found []*tableSection
	form := tableLayout{hidesAdoption: includesPods(results)}
	for _, a := range results {
		for _, info := range a.infos {
			table, err := parseTable(info.Object)
			if err != nil {
				return nil, fmt.Errorf("reading the table of %s from %s: %w", info.Mapping.Resource.Resource, a.target.Name(), err)
			}
			if len(table.Rows) == 0 {
				continue
			}
			form.addColumns(table, a.target)
			found = addToSections(found, info.Mapping, table)
		}
	}
	return sortByKind(found), nil
}

// addToSections appends the table's rows to the section with the same kind and columns. If there is none, it adds a section.
func addToSections(found []*tableSection, mapping *meta.RESTMapping, table *metav1.Table) []*tableSection {
	columns := columnNames(table)
	for _, s := range found {
		if s.mapping.Resource.GroupResource() == mapping.Resource.GroupResource() && s.columns == columns {
			s.table.Rows = append(s.table.Rows, table.Rows...)
			return found
		}
	}
	return append(found, &tableSection{mapping: mapping, columns: columns, table: table})
}

// sortByKind sorts tables so that tables of the same kind are adjacent. Kinds are in the order of
// their first occurrence.
func sortByKind(found []*tableSection) []*tableSection {
	rank := map[string]int{}
	for _, s := range found {
		name := s.mapping.Resource.GroupResource().String()
		if _, ok := rank[name]; !ok {
			rank[name] = len(rank)
		}
	}
	slices.SortStableFunc(found, func(a, b *tableSection) int {
		return rank[a.mapping.Resource.GroupResource().String()] - rank[b.mapping.Resource.GroupResource().String()]
	})
	return found
}

func columnNames(table *metav1.Table) string {
	var names []string
	for _, column := range table.ColumnDefinitions {
		names = append(names, column.Name)
	}
	return strings.Join(names, "\t")
}

// parseTable converts a server's response to a table. If the server does not support tables, the table contains the name and
// the creation time of the object.
func parseTable(object runtime.Object) (*metav1.Table, error) {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("unexpected response of type %T", object)
	}
	if content.GetKind() != "Table" || content.GroupVersionKind().Group != metav1.GroupName {
		return newPlainTable(content), nil
	}
	table := &metav1.Table{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content.Object, table); err != nil {
		return nil, err
	}
	for i := range table.Rows {
		row := &table.Rows[i]
		if row.Object.Raw == nil || row.Object.Object != nil {
			continue
		}
		decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, row.Object.Raw)
		if err != nil {
			return nil, err
		}
		row.Object.Object = decoded
	}
	return table, nil
}

func newPlainTable(object *unstructured.Unstructured) *metav1.Table {
	return &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name"},
			{Name: "Created At", Type: "string"},
		},
		Rows: []metav1.TableRow{{
			Cells:  []any{object.GetName(), object.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z")},
			Object: runtime.RawExtension{Object: object},
		}},
	}
}

// tableLayout configures the added columns.
type tableLayout struct {
	// hidesAdoption is true if only the wide output contains the column ADOPTION. Tables of Pods
	// are wide enough without it, and other tables in the same output use the same layout.
	hidesAdoption bool
	// isWatch is true for the rows of a watch. In a watch, the column ADOPTION is Y or N also for
	// objects in the control plane.
	isWatch bool
	// columns are the columns for tables without column definitions. Most events of a watch contain
	// such tables.
	columns []metav1.TableColumnDefinition
}

// includesPods reports whether the results include Pods.
func includesPods(results []targetResult) bool {
	for _, a := range results {
		for _, info := range a.infos {
			if isPod(info.Mapping) {
				return true
			}
		}
	}
	return false
}

// includesSeveralKinds reports whether the user requested several kinds, so that each row
// must show its kind.
func includesSeveralKinds(results []targetResult) bool {
	kinds := sets.New[schema.GroupKind]()
	for _, a := range results {
		for _, info := range a.infos {
			kinds.Insert(info.Mapping.GroupVersionKind.GroupKind())
		}
	}
	return len(kinds) > 1
}

func isPod(mapping *meta.RESTMapping) bool {
	return mapping.GroupVersionKind.GroupKind() == schema.GroupKind{Kind: "Pod"}
}

// addColumns inserts CLUSTER as the second column and appends ADOPTION as the last one.
func (l tableLayout) addColumns(table *metav1.Table, target command.Target) {
	if len(table.ColumnDefinitions) == 0 {
		table.ColumnDefinitions = slices.Clone(l.columns)
	}
	if len(table.ColumnDefinitions) > 0 {
		adoption := metav1.TableColumnDefinition{Name: "Adoption", Type: "string"}
		if l.hidesAdoption {
			adoption.Priority = 1
		}
		table.ColumnDefinitions = slices.Insert(table.ColumnDefinitions, 1, metav1.TableColumnDefinition{Name: "Cluster", Type: "string"})
		table.ColumnDefinitions = append(table.ColumnDefinitions, adoption)
	}
	for i := range table.Rows {
		row := &table.Rows[i]
		if len(row.Cells) == 0 {
			continue
		}
		row.Cells = append(slices.Insert(row.Cells, 1, any(target.Name())), l.adoptionCell(row.Object.Object, target))
	}
}

// adoptionCell returns Y if Karmada manages the object. Otherwise it returns N, or - for objects
// of the control plane.
func (l tableLayout) adoptionCell(object runtime.Object, target command.Target) string {
	if !target.IsMember() && !l.isWatch {
		return "-"
	}
	accessor, err := meta.Accessor(object)
	if err == nil && accessor.GetLabels()[workv1alpha1.ManagedByKarmadaLabel] == workv1alpha1.ManagedByKarmadaLabelValue {
		return "Y"
	}
	return "N"
}
