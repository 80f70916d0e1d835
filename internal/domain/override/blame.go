package override

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// maxBlamed bounds how many overriders are named for one refusal.
const maxBlamed = 3

// Refusal is what an API server said about fields of an object.
type Refusal struct {
	// Text is its message.
	Text string
	// Fields are the paths that it lists as causes, such as spec.containers[0].image.
	Fields []string
}

// Blame names the overriders that changed a refused field, out of the record of
// what was applied to the manifest; nil when none did. A record that cannot be read
// blames nothing.
func Blame(refusal Refusal, applied Applied, manifest *unstructured.Unstructured) []string {
	containers := containersOf(manifest.GetKind()).String()
	var blamed []string
	for _, scope := range []struct{ record, prefix, kind string }{
		{applied.Cluster, "", "ClusterOverridePolicy"},
		{applied.Namespaced, manifest.GetNamespace() + "/", "OverridePolicy"},
	} {
		var rules []appliedRule
		if scope.record == "" || json.Unmarshal([]byte(scope.record), &rules) != nil {
			continue
		}
		for i := range rules {
			eachPath(&rules[i].Overriders, containers, func(entry, path string) {
				if refusal.concerns(path) {
					blamed = append(blamed, fmt.Sprintf("%s %q, %s at %q", scope.kind, scope.prefix+rules[i].PolicyName, entry, path))
				}
			})
		}
	}
	if more := len(blamed) - maxBlamed; more > 0 {
		return append(blamed[:maxBlamed], fmt.Sprintf("and %d more", more))
	}
	return blamed
}

// eachPath visits the overriders with the places that they change.
func eachPath(o *policyv1alpha1.Overriders, containers string, visit func(entry, path string)) {
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

// indexes are the places of list entries in the path of a field: they are left out,
// for decoders do not say them.
var indexes = regexp.MustCompile(`\[[^\]]*\]`)

// concerns reports whether the refused field is at the path, above it or below it.
func (r Refusal) concerns(path string) bool {
	dotted := dottedPath(path)
	if dotted == "" {
		return false
	}
	for _, field := range r.Fields {
		field = indexes.ReplaceAllString(field, "")
		if field == dotted || strings.HasPrefix(field, dotted+".") || strings.HasPrefix(dotted, field+".") {
			return true
		}
	}
	return mentions(indexes.ReplaceAllString(r.Text, ""), dotted)
}

// dottedPath is a JSON pointer as API servers write it, without indexes.
func dottedPath(path string) string {
	tokens, err := parsePointer(path)
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

// mentions reports whether a text holds a path as a whole: what follows it may be a
// field below it, but not the rest of a longer name.
func mentions(text, path string) bool {
	for {
		at := strings.Index(text, path)
		if at < 0 {
			return false
		}
		rest := text[at+len(path):]
		if (at == 0 || !isNameByte(text[at-1])) && (rest == "" || !isNameByte(rest[0])) {
			return true
		}
		text = rest
	}
}

func isNameByte(b byte) bool {
	return b == '_' || b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
