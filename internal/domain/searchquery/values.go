package searchquery

import (
	"iter"
	"strconv"
	"strings"
	"time"
)

// values returns the field's values in an object. There are none if the object does not have the field,
// and several for arrays.
func (f field) values(cluster string, object map[string]any) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch f.kind {
		case clusterField:
			yield(cluster)
		case kindField, apiVersionField:
			yield(stringAt(object, string(f.kind)))
		case groupField:
			yield(groupOf(stringAt(object, "apiVersion")))
		case namespaceField, nameField:
			yield(stringAt(object, "metadata", string(f.kind)))
		case labelField:
			yieldKey(object, "labels", f.key, yield)
		case annotationField:
			yieldKey(object, "annotations", f.key, yield)
		case imageField:
			yieldImages(object["spec"], yield)
		case phaseField:
			yieldPath(object, []string{"status", "phase"}, yield)
		case nodeField:
			yieldPath(object, []string{"spec", "nodeName"}, yield)
		case readyField:
			yieldReady(object, yield)
		case statusField:
			yieldStatus(object, yield)
		case ownerField:
			yieldOwners(object, yield)
		case restartsField:
			yieldRestarts(object, yield)
		case pathField:
			yieldPath(object, f.path, yield)
		}
	}
}

// groupOf returns the API group of an apiVersion. The core group is "".
func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// at returns the value at the given path of field names, or nil if there is none.
func at(value any, path ...string) any {
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

func stringAt(value any, path ...string) string {
	text, _ := at(value, path...).(string)
	return text
}

func arrayAt(value any, path ...string) []any {
	array, _ := at(value, path...).([]any)
	return array
}

func yieldKey(object map[string]any, name, key string, yield func(string) bool) {
	entries, _ := at(object, "metadata", name).(map[string]any)
	if value, found := entries[key]; found {
		text, _ := scalar(value)
		yield(text)
	}
}

// yieldPath yields the scalar values at the path, including those in arrays. A key that contains dots
// matches several parts of the path.
func yieldPath(value any, path []string, yield func(string) bool) bool {
	switch value := value.(type) {
	case map[string]any:
		key := ""
		for i, part := range path {
			if i > 0 {
				key += "."
			}
			key += part
			if next, found := value[key]; found && !yieldPath(next, path[i+1:], yield) {
				return false
			}
		}
		return true
	case []any:
		for _, element := range value {
			if !yieldPath(element, path, yield) {
				return false
			}
		}
		return true
	}
	if text, isScalar := scalar(value); isScalar && len(path) == 0 {
		return yield(text)
	}
	return true
}

// containerLists returns the names of the fields that hold containers.
func containerLists() []string {
	return []string{"containers", "initContainers", "ephemeralContainers"}
}

// yieldImages yields the images of all containers in a spec, including Pod templates.
func yieldImages(value any, yield func(string) bool) bool {
	fields, _ := value.(map[string]any)
	for _, list := range containerLists() {
		for _, container := range arrayAt(fields, list) {
			if image := stringAt(container, "image"); image != "" && !yield(image) {
				return false
			}
		}
	}
	for _, template := range []string{"template", "jobTemplate", "spec"} {
		if nested, found := fields[template]; found && !yieldImages(nested, yield) {
			return false
		}
	}
	return true
}

// yieldReady yields "true" or "false" for an object that reports whether it is ready, by the condition
// Ready or Available, or by the number of ready replicas. It yields nothing for other objects.
func yieldReady(object map[string]any, yield func(string) bool) {
	for _, conditionType := range []string{"Ready", "Available"} {
		if status, found := conditionStatus(object, conditionType); found {
			yield(strconv.FormatBool(status == "True"))
			return
		}
	}
	want, hasReplicas := integerAt(object, "spec", "replicas")
	if !hasReplicas {
		return
	}
	ready, _ := integerAt(object, "status", "readyReplicas")
	yield(strconv.FormatBool(ready >= want))
}

func conditionStatus(object map[string]any, conditionType string) (string, bool) {
	for _, condition := range arrayAt(object, "status", "conditions") {
		if stringAt(condition, "type") == conditionType {
			return stringAt(condition, "status"), true
		}
	}
	return "", false
}

func integerAt(value any, path ...string) (int64, bool) {
	switch number := at(value, path...).(type) {
	case int64:
		return number, true
	case float64:
		return int64(number), true
	}
	return 0, false
}

// Statuses that are computed and do not occur as a text in the object.
const (
	statusTerminating = "Terminating"
	statusNotReady    = "NotReady"
)

// yieldStatus yields what describes the object's state: Terminating, the phase, the reasons why the
// object or its containers wait or ended, the conditions that are true, and NotReady.
func yieldStatus(object map[string]any, yield func(string) bool) {
	var found []string
	if stringAt(object, "metadata", "deletionTimestamp") != "" {
		found = append(found, statusTerminating)
	}
	found = append(found, stringAt(object, "status", "phase"), stringAt(object, "status", "reason"))
	for _, list := range containerStatusLists() {
		for _, container := range arrayAt(object, "status", list) {
			for _, state := range []string{"waiting", "terminated"} {
				found = append(found, stringAt(container, "state", state, "reason"))
			}
		}
	}
	for _, condition := range arrayAt(object, "status", "conditions") {
		conditionType, isTrue := stringAt(condition, "type"), stringAt(condition, "status") == "True"
		switch {
		case isTrue:
			found = append(found, conditionType)
		case conditionType == "Ready":
			found = append(found, statusNotReady)
		}
	}
	for _, text := range found {
		if text != "" && !yield(text) {
			return
		}
	}
}

func containerStatusLists() []string {
	return []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}
}

// yieldOwners yields two values for each owner: Kind/name and name.
func yieldOwners(object map[string]any, yield func(string) bool) {
	for _, owner := range arrayAt(object, "metadata", "ownerReferences") {
		name := stringAt(owner, "name")
		if !yield(stringAt(owner, "kind")+"/"+name) || !yield(name) {
			return
		}
	}
}

// yieldRestarts yields the total number of restarts of all containers, if the object has container
// statuses.
func yieldRestarts(object map[string]any, yield func(string) bool) {
	var restarts int64
	found := false
	for _, list := range containerStatusLists() {
		for _, container := range arrayAt(object, "status", list) {
			count, _ := integerAt(container, "restartCount")
			restarts += count
			found = true
		}
	}
	if found {
		yield(strconv.FormatInt(restarts, 10))
	}
}

// ageOf returns the time since the object's creation. It returns false if the creation time is missing
// or invalid.
func ageOf(object map[string]any, now time.Time) (time.Duration, bool) {
	created, err := time.Parse(time.RFC3339, stringAt(object, "metadata", "creationTimestamp"))
	if err != nil || now.IsZero() {
		return 0, false
	}
	return now.Sub(created), true
}
