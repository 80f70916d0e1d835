package override

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// image is a parsed container image reference: [registry/]repository[:tag][@digest].
type image struct {
	registry, repository, tag, digest string
}

var (
	repositoryPattern = regexp.MustCompile(`^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$`)
	registryPattern   = regexp.MustCompile(`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?$`)
	tagPattern        = regexp.MustCompile(`^\w[\w.-]{0,127}$`)
	digestPattern     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$`)
)

// parseImage parses an image reference. The text before the first slash is the registry if it can be a
// host, that is, contains a dot or a colon, or is localhost.
func parseImage(text string) (image, error) {
	var parsed image
	rest := text
	if name, digest, found := strings.Cut(rest, "@"); found {
		if !digestPattern.MatchString(digest) {
			return image{}, fmt.Errorf("image %q has an invalid digest", text)
		}
		parsed.digest, rest = digest, name
	}
	if host, path, found := strings.Cut(rest, "/"); found && (strings.ContainsAny(host, ".:") || host == "localhost") {
		if !registryPattern.MatchString(host) {
			return image{}, fmt.Errorf("image %q has an invalid registry", text)
		}
		parsed.registry, rest = host, path
	}
	if name, tag, found := strings.Cut(rest, ":"); found {
		if !tagPattern.MatchString(tag) {
			return image{}, fmt.Errorf("image %q has an invalid tag", text)
		}
		parsed.tag, rest = tag, name
	}
	if !repositoryPattern.MatchString(rest) {
		return image{}, fmt.Errorf("image %q has an invalid repository", text)
	}
	parsed.repository = rest
	return parsed, nil
}

// String formats the image reference. If the repository is empty, there is no slash after the registry.
func (i image) String() string {
	text := i.repository
	if i.registry != "" {
		text = strings.TrimSuffix(i.registry+"/"+text, "/")
	}
	switch suffix := joinTag(i.tag, i.digest); {
	case suffix == "":
		return text
	case i.tag == "":
		return text + "@" + suffix
	default:
		return text + ":" + suffix
	}
}

// withOverride returns the image reference after the overrider was applied. The tag and the digest are a
// single component: a new tag removes the digest, and a new digest removes the tag, because they would
// identify different content. A value with both, such as v2@sha256:…, sets both.
func (i image) withOverride(entry policyv1alpha1.ImageOverrider) string {
	switch entry.Component {
	case policyv1alpha1.Registry:
		i.registry = applyOperator(i.registry, entry)
	case policyv1alpha1.Repository:
		i.repository = applyOperator(i.repository, entry)
	case policyv1alpha1.Tag:
		i.tag, i.digest = splitTag(applyOperator(cmp.Or(i.tag, i.digest), entry))
	}
	return i.String()
}

func applyOperator(current string, entry policyv1alpha1.ImageOverrider) string {
	switch entry.Operator {
	case policyv1alpha1.OverriderOpAdd:
		return current + entry.Value
	case policyv1alpha1.OverriderOpReplace:
		return entry.Value
	case policyv1alpha1.OverriderOpRemove:
		return ""
	default:
		return current
	}
}

// joinTag joins a tag and a digest, either of which may be empty.
func joinTag(tag, digest string) string {
	if tag == "" || digest == "" {
		return tag + digest
	}
	return tag + "@" + digest
}

// splitTag splits a Tag overrider's value into the tag and the digest. An invalid value is returned as
// the tag.
func splitTag(value string) (tag, digest string) {
	if digestPattern.MatchString(value) {
		return "", value
	}
	if tag, digest, found := strings.Cut(value, "@"); found && tag != "" {
		return tag, digest
	}
	return value, ""
}

// ValidateImageOverrider returns an error if the entry cannot result in a valid image reference,
// regardless of the template's image.
func ValidateImageOverrider(entry policyv1alpha1.ImageOverrider) error {
	if entry.Operator != policyv1alpha1.OverriderOpReplace {
		return nil // whether the result is valid depends on the image
	}
	sample := image{registry: "registry.example", repository: "app", tag: "v1"}
	if _, err := parseImage(sample.withOverride(entry)); err != nil {
		return fmt.Errorf("%s %q does not give a valid image reference: %w", strings.ToLower(string(entry.Component)), entry.Value, err)
	}
	return nil
}

// overrideImage changes the image at the path of the predicate, in objects of any kind. Without a
// predicate it changes the images of all containers of a workload. If any image would not be a valid
// image reference, no image is changed and the reason is returned.
func overrideImage(manifest *unstructured.Unstructured, entry policyv1alpha1.ImageOverrider) (string, error) {
	if entry.Predicate != nil {
		return overrideImageAt(manifest, entry)
	}
	if containersPath(manifest.GetKind()) == nil {
		return unsupportedKind(manifest), nil
	}
	var why string
	changed := map[string]string{}
	forEachImage := func(visit func(path jsonedit.Pointer, container map[string]any) error) error {
		return forEachContainer(manifest, func(path jsonedit.Pointer, container map[string]any) error {
			if _, present := container["image"]; !present {
				return nil // a missing image is valid in a template, because admission in the member may set it
			}
			return visit(append(slices.Clone(path), "image"), container)
		})
	}
	err := forEachImage(func(path jsonedit.Pointer, container map[string]any) error {
		text, invalid, err := changeImage(path, container["image"], entry)
		changed[path.String()], why = text, cmp.Or(why, invalid)
		return err
	})
	if err != nil || why != "" {
		return why, err
	}
	return "", forEachImage(func(path jsonedit.Pointer, container map[string]any) error {
		container["image"] = changed[path.String()]
		return nil
	})
}

func overrideImageAt(manifest *unstructured.Unstructured, entry policyv1alpha1.ImageOverrider) (string, error) {
	path, err := jsonedit.ParsePointer(entry.Predicate.Path)
	if err != nil {
		return "", err
	}
	current, err := path.Get(manifest.Object)
	if err != nil {
		return "", patchOperation{operator: policyv1alpha1.OverriderOpRemove, path: path}.addRemedy(err)
	}
	changed, why, err := changeImage(path, current, entry)
	if err != nil || why != "" {
		return why, err
	}
	_, err = patchOperation{operator: policyv1alpha1.OverriderOpReplace, path: path, value: changed}.apply(manifest.Object)
	return "", err
}

// changeImage returns the changed image, or why the change would not give a valid image reference.
func changeImage(path jsonedit.Pointer, current any, entry policyv1alpha1.ImageOverrider) (changed, why string, err error) {
	text, ok := current.(string)
	if !ok {
		return "", "", mismatchf(path.String(), "set the path to that of an image", "expected a string, found %s", jsonedit.TypeName(current))
	}
	parsed, err := parseImage(text)
	if err != nil {
		return "", "", &mismatchError{path: path.String(), remedy: "correct the image in the template", err: err}
	}
	changed = parsed.withOverride(entry)
	if _, invalid := parseImage(changed); invalid != nil {
		return "", fmt.Sprintf("image %q at %s is not changed, because the result would not be a valid image reference: %v",
			text, path, invalid), nil
	}
	return changed, "", nil
}
