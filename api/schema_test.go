package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The schema of a CRD is written one line for each path:
//
//	.spec.taints[] object required=effect,key
//
// where [] stands for the items of a list and {} for the values of a map. A
// Kubernetes type is one line, "k8s" and its name; what is below belongs to
// Kubernetes.

type definition struct {
	Spec struct {
		Group string
		Names struct {
			Kind, ListKind, Plural, Singular string
			ShortNames, Categories           []string
		}
		Scope    string
		Versions []version
	}
}

type version struct {
	Name                     string
	Served, Storage          bool
	Subresources             map[string]any
	AdditionalPrinterColumns []printerColumn
	Schema                   struct{ OpenAPIV3Schema *schemaNode }
}

type printerColumn struct {
	Name, Type, Format, JSONPath string
	Priority                     int32
}

type schemaNode struct {
	Type                 string
	Format               string
	Required             []string
	Enum                 []any
	Default              json.RawMessage
	MinLength, MaxLength *int64
	MinItems, MaxItems   *int64
	Minimum, Maximum     *json.Number
	Pattern              string
	Nullable             bool
	AnyOf                []struct{ Type string }
	Properties           map[string]*schemaNode
	Items                *schemaNode
	AdditionalProperties *schemaNode
	ListType             string       `json:"x-kubernetes-list-type"`
	ListMapKeys          []string     `json:"x-kubernetes-list-map-keys"`
	MapType              string       `json:"x-kubernetes-map-type"`
	Preserve             bool         `json:"x-kubernetes-preserve-unknown-fields"`
	IntOrString          bool         `json:"x-kubernetes-int-or-string"`
	Embedded             bool         `json:"x-kubernetes-embedded-resource"`
	Validations          []validation `json:"x-kubernetes-validations"`
}

type validation struct{ Rule string }

// lines writes a definition. kubernetes names the Kubernetes types by
// "<version><path>"; where the schema does not look like the type, the subtree
// is written out.
func (d definition) lines(kubernetes map[string]string) []string {
	n := d.Spec.Names
	out := []string{
		"group " + d.Spec.Group,
		"kind " + n.Kind,
		"listKind " + n.ListKind,
		"plural " + n.Plural,
		"singular " + n.Singular,
	}
	for _, s := range n.ShortNames {
		out = append(out, "shortName "+s)
	}
	for _, s := range n.Categories {
		out = append(out, "category "+s)
	}
	out = append(out, "scope "+d.Spec.Scope)
	for _, v := range d.Spec.Versions {
		out = append(out, v.lines(kubernetes)...)
	}
	return out
}

func (v version) lines(kubernetes map[string]string) []string {
	head := "version " + v.Name
	if v.Served {
		head += " served"
	}
	if v.Storage {
		head += " storage"
	}
	out := []string{"", head}
	for _, name := range slices.Sorted(maps.Keys(v.Subresources)) {
		out = append(out, strings.TrimSuffix("subresource "+name+" "+compactJSON(v.Subresources[name]), " {}"))
	}
	for _, c := range v.AdditionalPrinterColumns {
		out = append(out, c.line())
	}
	root := *v.Schema.OpenAPIV3Schema
	root.Properties = maps.Clone(root.Properties)
	for _, everyKindHas := range []string{"apiVersion", "kind", "metadata"} {
		delete(root.Properties, everyKindHas)
	}
	return root.appendLines(out, v.Name, "", kubernetes)
}

func (c printerColumn) line() string {
	line := fmt.Sprintf("column %s %s", compactJSON(c.Name), c.Type)
	if c.Format != "" {
		line += " format=" + c.Format
	}
	line += " " + compactJSON(c.JSONPath)
	if c.Priority != 0 {
		line += fmt.Sprintf(" priority=%d", c.Priority)
	}
	return line
}

// dropAddedColumns drops trailing columns that are not in the contract if only -o wide
// shows them. It keeps an added column that precedes a column of the contract, so that the
// test reports this column as a difference.
func (v *version) dropAddedColumns(contract []string) {
	columns := v.AdditionalPrinterColumns
	for len(columns) > 0 {
		last := columns[len(columns)-1]
		if last.Priority == 0 || slices.Contains(contract, last.line()) {
			break
		}
		columns = columns[:len(columns)-1]
	}
	v.AdditionalPrinterColumns = columns
}

// dropAddedShortNames drops short names that are not in the contract.
func (d *definition) dropAddedShortNames(contract []string) {
	d.Spec.Names.ShortNames = slices.DeleteFunc(d.Spec.Names.ShortNames, func(name string) bool {
		return !slices.Contains(contract, "shortName "+name)
	})
}

func (n *schemaNode) appendLines(out []string, version, path string, kubernetes map[string]string) []string {
	at := path
	if at == "" {
		at = "."
	}
	if name, ok := kubernetes[version+at]; ok && n.hasFieldsOf(name) {
		return append(out, at+" k8s "+name)
	}
	out = append(out, at+" "+n.line())
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		out = n.Properties[name].appendLines(out, version, path+"."+name, kubernetes)
	}
	if n.Items != nil {
		out = n.Items.appendLines(out, version, path+"[]", kubernetes)
	}
	if n.AdditionalProperties != nil {
		out = n.AdditionalProperties.appendLines(out, version, path+"{}", kubernetes)
	}
	return out
}

func (n *schemaNode) line() string {
	words := []string{n.Type}
	if n.Type == "" {
		words[0] = "any"
	}
	add := func(given bool, name string, value any) {
		if given {
			words = append(words, fmt.Sprintf("%s=%v", name, value))
		}
	}
	number := func(name string, value *int64) {
		if value != nil {
			add(true, name, *value)
		}
	}
	add(n.Format != "", "format", n.Format)
	add(len(n.Required) > 0, "required", sortedList(n.Required))
	add(len(n.Enum) > 0, "enum", sortedList(n.Enum))
	add(n.Default != nil, "default", string(n.Default))
	number("minLength", n.MinLength)
	number("maxLength", n.MaxLength)
	number("minItems", n.MinItems)
	number("maxItems", n.MaxItems)
	if n.Minimum != nil {
		add(true, "minimum", *n.Minimum)
	}
	if n.Maximum != nil {
		add(true, "maximum", *n.Maximum)
	}
	add(n.Pattern != "", "pattern", compactJSON(n.Pattern))
	return strings.Join(append(words, n.attributes()...), " ")
}

func (n *schemaNode) attributes() []string {
	var words []string
	add := func(given bool, word string) {
		if given {
			words = append(words, word)
		}
	}
	add(n.Nullable, "nullable")
	if len(n.AnyOf) > 0 {
		var types []string
		for _, t := range n.AnyOf {
			types = append(types, t.Type)
		}
		add(true, "anyOf="+strings.Join(types, ","))
	}
	add(n.ListType != "", "listType="+n.ListType)
	add(len(n.ListMapKeys) > 0, "listMapKeys="+strings.Join(n.ListMapKeys, ","))
	add(n.MapType != "", "mapType="+n.MapType)
	add(n.Preserve, "preserve-unknown-fields")
	add(n.IntOrString, "int-or-string")
	add(n.Embedded, "embedded-resource")
	for _, v := range n.Validations {
		add(true, formatRule(v.Rule))
	}
	return words
}

// formatRule formats a validation rule.
func formatRule(rule string) string { return "rule=" + compactJSON(rule) }

// dropAddedRules drops the validation rules that are not in the contract. These rules
// reject only objects that admission rejects too, so clients see no difference. Tests of
// the admission check that the rules reject no other objects.
func (n *schemaNode) dropAddedRules(contract string) {
	if n == nil {
		return
	}
	n.Validations = slices.DeleteFunc(n.Validations, func(v validation) bool {
		return !strings.Contains(contract, formatRule(v.Rule))
	})
	for _, property := range n.Properties {
		property.dropAddedRules(contract)
	}
	n.Items.dropAddedRules(contract)
	n.AdditionalProperties.dropAddedRules(contract)
}

// hasFieldsOf reports whether a node has the fields of the Kubernetes type.
func (n *schemaNode) hasFieldsOf(name string) bool {
	if name == "api/resource Quantity" {
		return n.IntOrString && n.Pattern != ""
	}
	goType, ok := kubernetesTypes[name]
	if !ok {
		return false
	}
	return slices.Equal(slices.Sorted(maps.Keys(n.Properties)), jsonFields(goType))
}

var kubernetesTypes = map[string]reflect.Type{
	"admissionregistration.k8s.io/v1 WebhookClientConfig": reflect.TypeFor[admissionregistrationv1.WebhookClientConfig](),
	"autoscaling/v2 HorizontalPodAutoscalerBehavior":      reflect.TypeFor[autoscalingv2.HorizontalPodAutoscalerBehavior](),
	"autoscaling/v2 MetricSpec":                           reflect.TypeFor[autoscalingv2.MetricSpec](),
	"autoscaling/v2 MetricStatus":                         reflect.TypeFor[autoscalingv2.MetricStatus](),
	"core/v1 Affinity":                                    reflect.TypeFor[corev1.Affinity](),
	"core/v1 Container":                                   reflect.TypeFor[corev1.Container](),
	"core/v1 NodeSelector":                                reflect.TypeFor[corev1.NodeSelector](),
	"core/v1 PersistentVolumeClaimTemplate":               reflect.TypeFor[corev1.PersistentVolumeClaimTemplate](),
	"core/v1 ResourceRequirements":                        reflect.TypeFor[corev1.ResourceRequirements](),
	"core/v1 Toleration":                                  reflect.TypeFor[corev1.Toleration](),
	"core/v1 Volume":                                      reflect.TypeFor[corev1.Volume](),
	"core/v1 VolumeMount":                                 reflect.TypeFor[corev1.VolumeMount](),
	"meta/v1 Condition":                                   reflect.TypeFor[metav1.Condition](),
	"meta/v1 LabelSelector":                               reflect.TypeFor[metav1.LabelSelector](),
	"networking.k8s.io/v1 IngressSpec":                    reflect.TypeFor[networkingv1.IngressSpec](),
}

// jsonFields returns the sorted JSON names of the fields of a struct.
func jsonFields(t reflect.Type) []string {
	var names []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			names = append(names, jsonFields(field.Type)...)
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func sortedList[T any](values []T) string {
	var words []string
	for _, v := range values {
		words = append(words, fmt.Sprint(v))
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}

func compactJSON(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}
