package v1alpha1

// OverriderOperator is the operation on a value.
type OverriderOperator string

// Values of OverriderOperator.
const (
	// OverriderOpAdd adds a value.
	OverriderOpAdd OverriderOperator = "add"
	// OverriderOpRemove removes a value.
	OverriderOpRemove OverriderOperator = "remove"
	// OverriderOpReplace replaces a value.
	OverriderOpReplace OverriderOperator = "replace"
)

// PlaintextOverrider is one JSON Patch operation (RFC 6902) on the object.
type PlaintextOverrider struct {
	// Path is the JSON pointer (RFC 6901) of the field, such as /spec/replicas.
	// +required
	Path string `json:"path"`

	// Operator is the operation. replace and remove fail when the field does
	// not exist.
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value is the new value, of any JSON type. Not used by remove.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value JSON `json:"value,omitempty,omitzero"`
}

// LabelAnnotationOverrider changes labels or annotations.
type LabelAnnotationOverrider struct {
	// Operator is the operation: add sets the keys whether they exist or not,
	// replace changes only the keys that exist, remove removes the keys that
	// exist.
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value holds the keys and their new values; remove ignores the values.
	// +required
	Value map[string]string `json:"value"`
}

// ImageOverrider changes one component of container images, which are read as
// [registry/]repository[:tag|@digest].
type ImageOverrider struct {
	// Predicate selects the one image to change. Unset means the images of all
	// containers (not the init containers) of a Pod, ReplicaSet, Deployment,
	// DaemonSet, StatefulSet or Job; other kinds are not changed.
	// +optional
	Predicate *ImagePredicate `json:"predicate,omitempty"`

	// Component is the part of the image name to change: Registry, Repository
	// or Tag (the tag or the digest).
	// +required
	// +kubebuilder:validation:Enum=Registry;Repository;Tag
	Component ImageComponent `json:"component"`

	// Operator is the operation: add appends the value to the component,
	// replace sets the component to the value, remove clears the component.
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value is the text to append or to set. Not used by remove.
	// +optional
	Value string `json:"value,omitempty"`
}

// ImagePredicate selects one image in an object.
type ImagePredicate struct {
	// Path is the JSON pointer (RFC 6901) of the field with the image name.
	// +required
	Path string `json:"path"`
}

// ImageComponent is a part of an image name.
type ImageComponent string

// Values of ImageComponent.
const (
	// Registry is the part before the first slash when it has a dot or a colon
	// or is localhost.
	Registry ImageComponent = "Registry"
	// Repository is the name between registry and tag.
	Repository ImageComponent = "Repository"
	// Tag is the tag or the digest.
	Tag ImageComponent = "Tag"
)

// CommandArgsOverrider changes the command or the arguments of a container.
type CommandArgsOverrider struct {
	// ContainerName is the name of the container.
	// +required
	ContainerName string `json:"containerName"`

	// Operator is the operation: add appends the values, remove removes every
	// element equal to one of them.
	// +required
	// +kubebuilder:validation:Enum=add;remove
	Operator OverriderOperator `json:"operator"`

	// Value holds the elements to add or to remove.
	// +optional
	Value []string `json:"value,omitempty"`
}

// FieldOverrider changes a document that is stored as text in a field, such as
// an entry of a ConfigMap. Exactly one of json and yaml is given.
type FieldOverrider struct {
	// FieldPath is the JSON pointer (RFC 6901) of the field that holds the
	// document, such as /data/config.yaml. A missing field is an error.
	// +required
	FieldPath string `json:"fieldPath"`

	// JSON are operations on a document written in JSON.
	// +optional
	JSON []JSONPatchOperation `json:"json,omitempty"`

	// YAML are operations on a document written in YAML. It is written back as
	// YAML; comments and the order of keys are lost.
	// +optional
	YAML []YAMLPatchOperation `json:"yaml,omitempty"`
}

// JSONPatchOperation is one JSON Patch operation (RFC 6902) on a document
// written in JSON.
type JSONPatchOperation struct {
	// SubPath is the JSON pointer (RFC 6901) inside the document.
	// +required
	SubPath string `json:"subPath"`

	// Operator is the operation.
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value is the new value, of any JSON type. Needed by add and replace,
	// forbidden with remove.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value JSON `json:"value,omitempty,omitzero"`
}

// YAMLPatchOperation is one JSON Patch operation (RFC 6902) on a document
// written in YAML.
type YAMLPatchOperation struct {
	// SubPath is the JSON pointer (RFC 6901) inside the document.
	// +required
	SubPath string `json:"subPath"`

	// Operator is the operation.
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value is the new value, of any JSON type. Needed by add and replace,
	// forbidden with remove.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value JSON `json:"value,omitempty,omitzero"`
}
