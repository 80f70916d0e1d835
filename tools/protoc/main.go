// Protoc generates Go code from the .proto files of a directory, without the C++ compiler protoc.
//
//	protoc -prefix karmada/estimator DIRECTORY PLUGIN...
//
// A plugin is the path of a program such as protoc-gen-go. The plugins write into DIRECTORY.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	log.SetFlags(0)
	prefix := flag.String("prefix", "", "the path with which .proto files import the files of the directory")
	flag.Parse()
	if flag.NArg() < 2 {
		log.Fatal("usage: protoc [-prefix PATH] DIRECTORY PLUGIN...")
	}
	if err := generate(context.Background(), flag.Arg(0), *prefix, flag.Args()[1:]); err != nil {
		log.Fatal(err)
	}
}

func generate(ctx context.Context, directory, prefix string, plugins []string) error {
	request, err := compile(ctx, directory, prefix)
	if err != nil {
		return err
	}
	for _, plugin := range plugins {
		files, err := run(ctx, plugin, request)
		if err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(directory, path.Base(file.GetName())), []byte(file.GetContent()), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile parses the .proto files of the directory and returns the request for a plugin.
func compile(ctx context.Context, directory, prefix string) (*pluginpb.CodeGeneratorRequest, error) {
	found, err := filepath.Glob(filepath.Join(directory, "*.proto"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no .proto files in %s", directory)
	}
	sources := make(map[string]string, len(found))
	request := &pluginpb.CodeGeneratorRequest{}
	for _, file := range found {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := path.Join(prefix, filepath.Base(file))
		sources[name] = string(content)
		request.FileToGenerate = append(request.FileToGenerate, name)
	}
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(sources)},
		SourceInfoMode: protocompile.SourceInfoStandard, // the plugins copy comments
	}
	// Glob sorts. "messages.proto" precedes "service.proto", which imports it, as plugins require.
	files, err := compiler.Compile(ctx, request.FileToGenerate...)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		request.ProtoFile = append(request.ProtoFile, protodesc.ToFileDescriptorProto(file))
	}
	return request, validateOrder(request.ProtoFile)
}

// validateOrder returns an error if a file imports a file that follows it.
func validateOrder(files []*descriptorpb.FileDescriptorProto) error {
	seen := make(map[string]bool, len(files))
	for _, file := range files {
		for _, imported := range file.GetDependency() {
			if !seen[imported] {
				return fmt.Errorf("%s imports %s, whose name does not precede it", file.GetName(), imported)
			}
		}
		seen[file.GetName()] = true
	}
	return nil
}

// run returns the files that the plugin generates.
func run(ctx context.Context, plugin string, request *pluginpb.CodeGeneratorRequest) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	input, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, plugin)
	command.Stdin, command.Stderr = bytes.NewReader(input), os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, err
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(output, response); err != nil {
		return nil, err
	}
	if message := response.GetError(); message != "" {
		return nil, errors.New(message)
	}
	return response.GetFile(), nil
}
