package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
)

// configFields lists the YAML paths of all fields of the type Config in a source file: "mesh.port".
// A field whose type is a struct of the same file is replaced by that struct's fields. A field
// whose type is a pointer to such a struct is listed as well as the struct's fields.
func configFields(source []byte) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", source, 0)
	if err != nil {
		return nil, err
	}
	structs := map[string]*ast.StructType{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if s, ok := spec.Type.(*ast.StructType); ok {
				structs[spec.Name.Name] = s
			}
		}
		return true
	})
	return fieldsOf(structs, "Config", ""), nil
}

func fieldsOf(structs map[string]*ast.StructType, name, prefix string) (out []string) {
	for _, f := range structs[name].Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			continue // cannot happen: the parser has checked it
		}
		key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if star, ok := f.Type.(*ast.StarExpr); ok { // an optional struct: a field, and its fields
			if id, ok := star.X.(*ast.Ident); ok && structs[id.Name] != nil {
				out = append(out, fieldsOf(structs, id.Name, prefix+key+".")...)
			}
		} else if id, ok := f.Type.(*ast.Ident); ok && structs[id.Name] != nil {
			out = append(out, fieldsOf(structs, id.Name, prefix+key+".")...)
			continue
		}
		out = append(out, prefix+key)
	}
	return out
}
