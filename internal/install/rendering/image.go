package rendering

import (
	"errors"
	"regexp"
	"strings"
)

// ImageName is the name, below a user's registry, of the image that contains all Karmada programs.
const ImageName = "karmada"

// LocalRegistry is the registry in the name of an image that was built but not pushed.
const LocalRegistry = "localhost/karmada"

// Image returns the name that the build gives to the image with all programs. Nodes have the image only
// after it was loaded into them.
func Image(tag string) string { return LocalRegistry + "/" + ImageName + ":" + tag }

// LocalImage returns the values that make all components use the local image.
func LocalImage() Values {
	return Values{"componentDefaults": Values{"image": Values{"registry": LocalRegistry, "repository": ImageName}}}
}

// SplitImage splits an image into its name and its tag or digest. As in container runtimes, the tag defaults
// to latest.
func SplitImage(image string) (repository, tag string) {
	if name, digest, ok := strings.Cut(image, "@"); ok {
		return name, digest
	}
	colon := strings.LastIndex(image, ":")
	if colon < 0 || strings.Contains(image[colon:], "/") {
		return image, "latest"
	}
	return image[:colon], image[colon+1:]
}

// imagePattern matches an image name. Unlike container runtimes, it requires the host in lower case. The
// chart's templates contain the same pattern.
var imagePattern = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]+)?/)?` + // host
	`[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*` + // path
	`(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?(@sha256:[0-9a-f]{64})?$`) // tag and digest

// ValidateImage returns an error if name is not an image name, optionally with a tag and a digest.
func ValidateImage(name string) error {
	if !imagePattern.MatchString(name) {
		return errors.New("it must be the name of an image in lower case and without https://, such as registry.example.com/karmada/karmada:v1.0.0")
	}
	return nil
}

// ValidateRegistry returns an error if registry is not a registry with an optional path.
func ValidateRegistry(registry string) error {
	if strings.Contains(registry, "@") || !imagePattern.MatchString(registry+"/"+ImageName) {
		return errors.New("it must be a registry with an optional path, in lower case and without https://, such as registry.example.com/karmada")
	}
	return nil
}
