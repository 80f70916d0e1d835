package query

import (
	"mime"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

// acceptsTable reports whether the client prefers a Table to JSON.
func acceptsTable(headers []string) bool {
	for _, header := range headers {
		for accepted := range strings.SplitSeq(header, ",") {
			mediaType, options, err := mime.ParseMediaType(strings.TrimSpace(accepted))
			if err != nil || mediaType != "application/json" && mediaType != "application/*" && mediaType != "*/*" {
				continue
			}
			switch {
			case options["as"] == "":
				return false
			case options["as"] == "Table" && options["g"] == metav1.GroupName && options["v"] == metav1.SchemeGroupVersion.Version:
				return true
			}
		}
	}
	return false
}

// tableOf returns the list as a Table. In a watch, only the first Table has columns.
func tableOf(list *searchv1alpha1.SearchResultList, now time.Time, withColumns bool) *metav1.Table {
	table := &metav1.Table{ListMeta: list.ListMeta, Rows: make([]metav1.TableRow, 0, len(list.Items))}
	table.Kind, table.APIVersion = "Table", metav1.SchemeGroupVersion.String()
	if withColumns {
		table.ColumnDefinitions = []metav1.TableColumnDefinition{
			{Name: "Cluster", Type: "string", Description: "The cluster that has the object."},
			{Name: "Kind", Type: "string", Description: "The kind of the object."},
			{Name: "Namespace", Type: "string", Description: "The namespace of the object."},
			{Name: "Name", Type: "string", Format: "name", Description: "The name of the object."},
			{Name: "Age", Type: "string", Description: "The time since the creation of the object."},
			{Name: "Matched", Type: "string", Description: "What matched the query."},
		}
	}
	for i := range list.Items {
		table.Rows = append(table.Rows, rowOf(&list.Items[i], now))
	}
	return table
}

func rowOf(item *searchv1alpha1.SearchResult, now time.Time) metav1.TableRow {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name, UID: item.UID}}
	object.Kind, object.APIVersion = "PartialObjectMetadata", metav1.SchemeGroupVersion.String()
	age := "<unknown>"
	if item.CreationTimestamp != nil {
		object.CreationTimestamp = *item.CreationTimestamp
		age = duration.HumanDuration(now.Sub(item.CreationTimestamp.Time))
	}
	matched := make([]string, 0, len(item.Matches))
	for _, match := range item.Matches {
		matched = append(matched, match.Field+"="+strings.Join(strings.Fields(match.Value), " "))
	}
	return metav1.TableRow{
		Cells:  []any{item.Cluster, item.Kind, item.Namespace, item.Name, age, strings.Join(matched, ", ")},
		Object: runtime.RawExtension{Object: object},
	}
}
