package get

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
	"karmada.io/karmada/internal/cli/place"
)

// section is one table of the output: rows of one kind with the same columns,
// from all places.
type section struct {
	mapping *meta.RESTMapping
	columns string
	table   *metav1.Table
}

// sections puts the answers of all places together, by kind as requested. Members
// of another version may have other columns; their rows stand in a table of their
// own.
func sections(answers []answer) ([]*section, error) {
	var found []*section
	form := layout{narrow: asksForPods(answers)}
	for _, a := range answers {
		for _, info := range a.infos {
			table, err := tableOf(info.Object)
			if err != nil {
				return nil, fmt.Errorf("reading the table of %s from %s: %w", info.Mapping.Resource.Resource, a.place.Name(), err)
			}
			if len(table.Rows) == 0 {
				continue
			}
			form.addColumns(table, a.place)
			found = include(found, info.Mapping, table)
		}
	}
	return byKind(found), nil
}

func include(found []*section, mapping *meta.RESTMapping, table *metav1.Table) []*section {
	columns := columnNames(table)
	for _, s := range found {
		if s.mapping.Resource.GroupResource() == mapping.Resource.GroupResource() && s.columns == columns {
			s.table.Rows = append(s.table.Rows, table.Rows...)
			return found
		}
	}
	return append(found, &section{mapping: mapping, columns: columns, table: table})
}

// byKind keeps tables of the same kind together, in the order in which the kinds
// came first.
func byKind(found []*section) []*section {
	rank := map[string]int{}
	for _, s := range found {
		name := s.mapping.Resource.GroupResource().String()
		if _, ok := rank[name]; !ok {
			rank[name] = len(rank)
		}
	}
	slices.SortStableFunc(found, func(a, b *section) int {
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

// tableOf reads a table from a server. An object of a server that makes no tables
// becomes one with its name and age.
func tableOf(object runtime.Object) (*metav1.Table, error) {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("unexpected answer of type %T", object)
	}
	if content.GetKind() != "Table" || content.GroupVersionKind().Group != metav1.GroupName {
		return plainTable(content), nil
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

func plainTable(object *unstructured.Unstructured) *metav1.Table {
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

// layout is how tables are shown.
type layout struct {
	// narrow tells that ADOPTION is for the wide output only: tables of pods are
	// wide enough, and tables that are shown beside one look alike.
	narrow bool
	// watched tells that rows are changes, which say of each object whether it is
	// managed, wherever it is.
	watched bool
	// columns are those of tables that come without, as most changes do.
	columns []metav1.TableColumnDefinition
}

// asksForPods tells whether pods are among the answers.
func asksForPods(answers []answer) bool {
	for _, a := range answers {
		for _, info := range a.infos {
			if isPod(info.Mapping) {
				return true
			}
		}
	}
	return false
}

// asksForSeveralKinds tells whether rows have to say their kind, also where only
// objects of one were found.
func asksForSeveralKinds(answers []answer) bool {
	kinds := sets.New[schema.GroupKind]()
	for _, a := range answers {
		for _, info := range a.infos {
			kinds.Insert(info.Mapping.GroupVersionKind.GroupKind())
		}
	}
	return len(kinds) > 1
}

func isPod(mapping *meta.RESTMapping) bool {
	return mapping.GroupVersionKind.GroupKind() == schema.GroupKind{Kind: "Pod"}
}

// addColumns puts CLUSTER in the second place and ADOPTION in the last one.
func (l layout) addColumns(table *metav1.Table, where place.Place) {
	if len(table.ColumnDefinitions) == 0 {
		table.ColumnDefinitions = slices.Clone(l.columns)
	}
	if len(table.ColumnDefinitions) > 0 {
		adoption := metav1.TableColumnDefinition{Name: "Adoption", Type: "string"}
		if l.narrow {
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
		row.Cells = append(slices.Insert(row.Cells, 1, any(where.Name())), l.adoption(row.Object.Object, where))
	}
}

// adoption tells whether Karmada manages an object.
func (l layout) adoption(object runtime.Object, where place.Place) string {
	if !where.Member() && !l.watched {
		return "-"
	}
	accessor, err := meta.Accessor(object)
	if err == nil && accessor.GetLabels()[workv1alpha1.ManagedByKarmadaLabel] == workv1alpha1.ManagedByKarmadaLabelValue {
		return "Y"
	}
	return "N"
}
