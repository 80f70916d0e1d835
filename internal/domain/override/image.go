package override

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonpointer"
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

// parseImage parses an image reference. The part before the first slash is the registry if it can
// be a host: it contains a dot or a colon, or is localhost.
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

// String returns the image reference. Without a repository it returns the registry
// without the slash, followed by the tag and the digest.
func (i image) String() string {
	text := i.repository
	if i.registry != "" {
		text = strings.TrimSuffix(i.registry+"/"+text, "/")
	}
	if i.tag != "" {
		text += ":" + i.tag
	}
	if i.digest != "" {
		text += "@" + i.digest
	}
	return text
}

// withOverride returns the image after one overrider. A change of the registry or the repository
// keeps the other parts. The tag and the digest are one component: a new tag removes the digest,
// and a new digest removes the tag, because they would identify different content.
func (i image) withOverride(entry policyv1alpha1.ImageOverrider) image {
	switch entry.Component {
	case policyv1alpha1.Registry:
		i.registry = applyOperator(i.registry, entry)
	case policyv1alpha1.Repository:
		i.repository = applyOperator(i.repository, entry)
	case policyv1alpha1.Tag:
		current := i.tag
		if current == "" {
			current = i.digest
		}
		i = i.withTagOrDigest(applyOperator(current, entry))
	}
	return i
}

// withTagOrDigest sets the tag or the digest, depending on the format of the text. If the text is
// invalid, it returns the image unchanged.
func (i image) withTagOrDigest(text string) image {
	switch {
	case text == "":
		i.tag, i.digest = "", ""
	case tagPattern.MatchString(text):
		i.tag, i.digest = text, ""
	case digestPattern.MatchString(text):
		i.tag, i.digest = "", text
	}
	return i
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

// overrideImage changes the image at the path of the predicate, in objects of any kind. Without a
// predicate it changes the images of all containers of a workload.
func overrideImage(manifest *unstructured.Unstructured, entry policyv1alpha1.ImageOverrider) error {
	if entry.Predicate != nil {
		return overrideImageAt(manifest, entry)
	}
	return forEachContainer(manifest, func(path jsonpointer.Pointer, container map[string]any) error {
		current, present := container["image"]
		if !present {
			return nil // a missing image is valid in a template, because admission in the member may set it
		}
		changed, err := changeImage(append(slices.Clone(path), "image"), current, entry)
		if err != nil {
			return err
		}
		container["image"] = changed
		return nil
	})
}

func overrideImageAt(manifest *unstructured.Unstructured, entry policyv1alpha1.ImageOverrider) error {
	path, err := jsonpointer.Parse(entry.Predicate.Path)
	if err != nil {
		return err
	}
	current, err := path.Get(manifest.Object)
	if err != nil {
		return patchOperation{operator: policyv1alpha1.OverriderOpRemove, path: path}.addRemedy(err)
	}
	changed, err := changeImage(path, current, entry)
	if err != nil {
		return err
	}
	_, err = patchOperation{operator: policyv1alpha1.OverriderOpReplace, path: path, value: changed}.apply(manifest.Object)
	return err
}

func changeImage(path jsonpointer.Pointer, current any, entry policyv1alpha1.ImageOverrider) (string, error) {
	text, ok := current.(string)
	if !ok {
		return "", mismatchf(path.String(), "set the path to that of an image", "expected a string, found %s", jsonpointer.TypeName(current))
	}
	parsed, err := parseImage(text)
	if err != nil {
		return "", &mismatchError{path: path.String(), remedy: "correct the image in the template", err: err}
	}
	return parsed.withOverride(entry).String(), nil
}
