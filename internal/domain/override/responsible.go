package override

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// maxResponsible is the maximum number of overriders that are listed for a rejection.
const maxResponsible = 3

// Rejection describes an API server's rejection of an object.
type Rejection struct {
	// Message is the API server's message.
	Message string
	// Fields are the field paths in the response's causes, such as spec.containers[0].image.
	Fields []string
}

// ResponsibleOverriders returns the overriders in the record that changed a rejected field, or nil if there
// are none. A record that cannot be decoded is ignored.
func ResponsibleOverriders(refusal Rejection, applied AppliedRecord, manifest *unstructured.Unstructured) []string {
	containers := containersPath(manifest.GetKind()).String()
	var responsible []string
	for _, scope := range []struct{ record, prefix, kind string }{
		{applied.Cluster, "", "ClusterOverridePolicy"},
		{applied.Namespaced, manifest.GetNamespace() + "/", "OverridePolicy"},
	} {
		var rules []appliedRule
		if scope.record == "" || json.Unmarshal([]byte(scope.record), &rules) != nil {
			continue
		}
		for i := range rules {
			forEachPath(&rules[i].Overriders, containers, func(entry, path string) {
				if refusal.concernsPath(path) {
					responsible = append(responsible, fmt.Sprintf("%s %q, %s at %q", scope.kind, scope.prefix+rules[i].PolicyName, entry, path))
				}
			})
		}
	}
	if more := len(responsible) - maxResponsible; more > 0 {
		return append(responsible[:maxResponsible], fmt.Sprintf("and %d more", more))
	}
	return responsible
}

// forEachPath calls visit for each overrider with the path that it changes.
func forEachPath(o *policyv1alpha1.Overriders, containers string, visit func(entry, path string)) {
	for i := range o.ImageOverrider {
		path := containers + "/image"
		if predicate := o.ImageOverrider[i].Predicate; predicate != nil {
			path = predicate.Path
		}
		visit(fmt.Sprintf("imageOverrider[%d]", i), path)
	}
	for i := range o.CommandOverrider {
		visit(fmt.Sprintf("commandOverrider[%d]", i), containers+"/command")
	}
	for i := range o.ArgsOverrider {
		visit(fmt.Sprintf("argsOverrider[%d]", i), containers+"/args")
	}
	for i := range o.LabelsOverrider {
		visit(fmt.Sprintf("labelsOverrider[%d]", i), "/metadata/labels")
	}
	for i := range o.AnnotationsOverrider {
		visit(fmt.Sprintf("annotationsOverrider[%d]", i), "/metadata/annotations")
	}
	for i := range o.FieldOverrider {
		visit(fmt.Sprintf("fieldOverrider[%d]", i), o.FieldOverrider[i].FieldPath)
	}
	for i := range o.Plaintext {
		visit(fmt.Sprintf("plaintext[%d] %s", i, o.Plaintext[i].Operator), o.Plaintext[i].Path)
	}
}

// listIndexPattern matches the list indexes in a field path. They are removed before paths are compared,
// because decoder errors do not contain them.
var listIndexPattern = regexp.MustCompile(`\[[^\]]*\]`)

// concernsPath reports whether the rejection concerns the path: a rejected field is at the path, or is its
// parent or child.
func (r Rejection) concernsPath(path string) bool {
	dotted := dottedPath(path)
	if dotted == "" {
		return false
	}
	for _, field := range r.Fields {
		field = listIndexPattern.ReplaceAllString(field, "")
		if field == dotted || strings.HasPrefix(field, dotted+".") || strings.HasPrefix(dotted, field+".") {
			return true
		}
	}
	return containsPath(listIndexPattern.ReplaceAllString(r.Message, ""), dotted)
}

// dottedPath converts a JSON pointer to the path notation of API server errors, without indexes.
func dottedPath(path string) string {
	tokens, err := jsonedit.ParsePointer(path)
	if err != nil {
		return ""
	}
	var names []string
	for _, token := range tokens {
		if token != "-" && strings.Trim(token, "0123456789") != "" {
			names = append(names, token)
		}
	}
	return strings.Join(names, ".")
}

// containsPath reports whether the text contains the path, or a path below it. A path within a longer name
// does not count.
func containsPath(text, path string) bool {
	for {
		start := strings.Index(text, path)
		if start < 0 {
			return false
		}
		rest := text[start+len(path):]
		if (start == 0 || !isNameByte(text[start-1])) && (rest == "" || !isNameByte(rest[0])) {
			return true
		}
		text = rest
	}
}

func isNameByte(b byte) bool {
	return b == '_' || b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
