// Package fieldselection evaluates the field selectors of lists and watches.
//
// An API server computes the fields of its kinds in code, or reads them from the selectable fields
// of a CustomResourceDefinition. The global proxy serves objects of any kind from its cache, so
// this package has a table of the fields of the Kubernetes kinds. For all other kinds, the name of a
// field is the path of its value.
package fieldselection

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/jsonedit"
)

// field describes how the value of a selectable field is read.
type field struct {
	// path is the path of the value. Empty means that the name of the field is the path.
	path string
	// orPath is read if there is no value at path.
	orPath string
	// missing is the value of an object without the field.
	missing string
}

// builtin contains the fields of the Kubernetes kinds, besides metadata.name and
// metadata.namespace. A kind of a Kubernetes group without an entry has only these two.
var builtin = map[schema.GroupKind]map[string]field{
	{Kind: "Pod"}: {
		"spec.nodeName": {}, "spec.restartPolicy": {}, "spec.schedulerName": {}, "spec.serviceAccountName": {},
		"spec.hostNetwork": {missing: "false"}, "status.phase": {}, "status.podIP": {}, "status.nominatedNodeName": {},
	},
	{Kind: "Node"}:                          {"spec.unschedulable": {missing: "false"}},
	{Kind: "Namespace"}:                     {"status.phase": {}},
	{Kind: "Secret"}:                        {"type": {}},
	{Kind: "Service"}:                       {"spec.clusterIP": {}, "spec.type": {}},
	{Kind: "ReplicationController"}:         {"status.replicas": {missing: "0"}},
	{Kind: "Event"}:                         eventFields("involvedObject", "source"),
	{Group: "events.k8s.io", Kind: "Event"}: eventFields("regarding", "deprecatedSource"),
	{Group: "apps", Kind: "ReplicaSet"}:     {"status.replicas": {missing: "0"}},
	{Group: "batch", Kind: "Job"}:           {"status.successful": {path: "status.succeeded", missing: "0"}},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {"spec.signerName": {}},
}

func eventFields(regarding, source string) map[string]field {
	all := map[string]field{
		"reason": {}, "type": {}, "reportingComponent": {orPath: "reportingController"},
		"source": {path: source + ".component", orPath: "reportingController"},
	}
	for _, name := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		all["involvedObject."+name] = field{path: regarding + "." + name}
		all["regarding."+name] = field{path: regarding + "." + name}
	}
	return all
}

// Selector selects objects by their fields.
type Selector struct {
	requirements []requirement
}

type requirement struct {
	field  field
	value  string
	equals bool
	// isName and isNamespace mark the fields that need no decoding.
	isName, isNamespace bool
}

// New returns the selector for objects of a kind. An error names a field that the kind does not
// have.
func New(kind schema.GroupKind, selector fields.Selector) (Selector, error) {
	result := Selector{}
	if selector == nil {
		return result, nil
	}
	for _, r := range selector.Requirements() {
		converted := requirement{value: r.Value, equals: r.Operator != "!=", isName: r.Field == "metadata.name",
			isNamespace: r.Field == "metadata.namespace"}
		if !converted.isName && !converted.isNamespace {
			var err error
			if converted.field, err = lookUp(kind, r.Field); err != nil {
				return result, err
			}
		}
		result.requirements = append(result.requirements, converted)
	}
	return result, nil
}

func lookUp(kind schema.GroupKind, name string) (field, error) {
	known, isBuiltin := builtin[kind]
	if !isBuiltin && !isKubernetesGroup(kind.Group) {
		return field{path: strings.TrimPrefix(name, ".")}, nil
	}
	found, ok := known[name]
	if !ok {
		return field{}, fmt.Errorf("field label not supported: %s", name)
	}
	if found.path == "" {
		found.path = name
	}
	return found, nil
}

// isKubernetesGroup reports whether a group is one of Kubernetes itself.
func isKubernetesGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") &&
		slices.Contains([]string{
			"admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates",
			"coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "networking", "node",
			"rbac.authorization", "resource", "scheduling", "storage", "storagemigration",
		}, strings.TrimSuffix(group, ".k8s.io"))
}

// IsEmpty reports whether the selector selects every object.
func (s Selector) IsEmpty() bool { return len(s.requirements) == 0 }

// Name returns the only name that the selector can select. ok is false if it can select several.
func (s Selector) Name() (name string, ok bool) {
	for _, r := range s.requirements {
		if r.isName && r.equals {
			return r.value, true
		}
	}
	return "", false
}

// Matches reports whether an object matches. object returns its JSON, and is called only if the
// namespace and the name are not enough.
func (s Selector) Matches(namespace, name string, object func() ([]byte, error)) (bool, error) {
	var document []byte
	for _, r := range s.requirements {
		value := name
		switch {
		case r.isName:
		case r.isNamespace:
			value = namespace
		default:
			if document == nil {
				var err error
				if document, err = object(); err != nil {
					return false, err
				}
			}
			value = r.field.read(document)
		}
		if (value == r.value) != r.equals {
			return false, nil
		}
	}
	return true, nil
}

// read returns the value of the field in an object as text.
func (f field) read(object []byte) string {
	for _, path := range []string{f.path, f.orPath} {
		if path == "" {
			continue
		}
		raw, err := jsonedit.Get(object, strings.Split(path, ".")...)
		if err != nil || raw == nil || string(raw) == "null" {
			continue
		}
		if raw[0] != '"' {
			return string(raw)
		}
		if text, err := jsonedit.GetString(object, strings.Split(path, ".")...); err == nil {
			return text
		}
	}
	return f.missing
}
