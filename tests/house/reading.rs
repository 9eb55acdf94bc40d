//! What the rules want to know of a Rust file, read with `syn`.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, UseTree, Visibility};

/// The facts of one file. Items under `#[cfg(test)]` are left out, but for `tests` and `functions`.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The lines of each item under `#[cfg(test)]`.
    pub(crate) tests: Vec<RangeInclusive<usize>>,
    /// Files that are modules under `#[cfg(test)]`: `mod tests;` is `tests`, a `#[path]` is what it says.
    pub(crate) test_files: Vec<String>,
    /// Every function, those of tests and those inside macros too.
    pub(crate) functions: Vec<Name>,
    /// Every path of two segments or more, and whatever a `use` names.
    pub(crate) paths: Vec<Path>,
    /// Structs, enums, unions, traits and type aliases, but for those inside functions.
    pub(crate) types: Vec<Name>,
    /// What is `pub` at the level of a module.
    pub(crate) exports: Vec<Export>,
    /// The line of each `#[doc(hidden)]`, on whatever it stands.
    pub(crate) hidden: Vec<usize>,
    /// What each `words!` says: the enum and its words.
    pub(crate) words: Vec<(String, Vec<String>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) line: usize,
    pub(crate) name: String,
}

/// A path as it stands in the file. One inside an inline module is told from the file's own module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
    /// The name that a `use` gives it.
    pub(crate) used_as: Option<String>,
}

impl Path {
    pub(crate) fn starts_with(&self, prefix: &[&str]) -> bool {
        self.segments.len() >= prefix.len() && self.segments.iter().zip(prefix).all(|(a, b)| a == b)
    }
}

/// A public item, module or `use`.
#[derive(Clone, Debug)]
pub(crate) struct Export {
    pub(crate) name: String,
    /// The inline modules around it.
    pub(crate) inside: Vec<String>,
    /// The line of its `#[doc(hidden)]`.
    pub(crate) hidden: Option<usize>,
    pub(crate) what: Exported,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exported {
    Item,
    /// `#[macro_export]`: it stands at the root of the crate.
    Macro,
    Module,
    /// `pub use` of this path.
    Use(Vec<String>),
}

/// Reads a file.
///
/// # Errors
/// The line and what is wrong, when the text is no Rust.
pub(crate) fn read(text: &str) -> Result<Reading, (usize, String)> {
    let file = syn::parse_file(text).map_err(|error| (error.span().start().line, error.to_string()))?;
    let mut reader = Reader::default();
    reader.visit_file(&file);
    Ok(reader.reading)
}

#[derive(Default)]
struct Reader {
    reading: Reading,
    inside: Vec<String>,
    in_tests: bool,
    in_function: bool,
}

impl Reader {
    /// Visits an item under these attributes: under `#[cfg(test)]` it counts as a test.
    fn under(&mut self, attributes: &[Attribute], span: Span, go_on: impl FnOnce(&mut Self)) {
        let outside = !self.in_tests;
        if outside && attributes.iter().any(is_cfg_test) {
            self.in_tests = true;
            self.reading.tests.push(span.start().line..=span.end().line);
            go_on(self);
            self.in_tests = false;
        } else {
            go_on(self);
        }
    }

    fn path(&mut self, span: Span, segments: Vec<String>, used_as: Option<String>) {
        if !self.in_tests {
            let segments = self.seen_from_the_file(segments);
            self.reading.paths.push(Path { line: span.start().line, segments, used_as });
        }
    }

    /// `super::x` in `mod inner { … }` is `self::x` of the file.
    fn seen_from_the_file(&self, segments: Vec<String>) -> Vec<String> {
        let ups = segments.iter().take_while(|segment| *segment == "super").count();
        let is_relative = ups > 0 || segments.first().is_some_and(|first| first == "self");
        if self.inside.is_empty() || !is_relative {
            return segments;
        }
        let rest = segments.into_iter().skip_while(|segment| segment == "self" || segment == "super");
        let above = ups.saturating_sub(self.inside.len());
        let start = if above > 0 { vec!["super".to_owned(); above] } else { vec!["self".to_owned()] };
        let kept = self.inside.iter().take(self.inside.len().saturating_sub(ups)).cloned();
        start.into_iter().chain(kept).chain(rest).collect()
    }

    fn use_tree(&mut self, tree: &UseTree, before: &[String]) {
        let with = |ident: &Ident| [before, &[ident.unraw().to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.use_tree(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.use_tree(tree, before));
            }
            // `a::{self}` names `a`.
            UseTree::Name(name) if name.ident == "self" => {
                self.path(name.span(), before.to_vec(), before.last().cloned());
            }
            UseTree::Name(name) => {
                self.path(name.span(), with(&name.ident), Some(name.ident.unraw().to_string()));
            }
            UseTree::Rename(rename) => {
                let segments = if rename.ident == "self" { before.to_vec() } else { with(&rename.ident) };
                self.path(rename.span(), segments, Some(rename.rename.unraw().to_string()));
            }
            UseTree::Glob(glob) => {
                self.path(glob.span(), [before, &["*".to_owned()]].concat(), Some("*".into()));
            }
        }
    }

    fn name(&mut self, kind: fn(&mut Reading) -> &mut Vec<Name>, ident: &Ident) {
        kind(&mut self.reading)
            .push(Name { line: ident.span().start().line, name: ident.unraw().to_string() });
    }

    fn item(&mut self, item: &Item) {
        let ident = match item {
            Item::Struct(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::TraitAlias(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            _ => None,
        };
        if let Some(ident) = ident.filter(|_| !self.in_tests && !self.in_function) {
            self.name(|reading| &mut reading.types, ident);
        }
        self.export(item);
    }

    fn export(&mut self, item: &Item) {
        use Exported::{Item as Plain, Macro, Module};
        let (vis, ident, what) = match item {
            Item::Const(item) => (&item.vis, &item.ident, Plain),
            Item::Enum(item) => (&item.vis, &item.ident, Plain),
            Item::Fn(item) => (&item.vis, &item.sig.ident, Plain),
            Item::Mod(item) => (&item.vis, &item.ident, Module),
            Item::Static(item) => (&item.vis, &item.ident, Plain),
            Item::Struct(item) => (&item.vis, &item.ident, Plain),
            Item::Trait(item) => (&item.vis, &item.ident, Plain),
            Item::TraitAlias(item) => (&item.vis, &item.ident, Plain),
            Item::Type(item) => (&item.vis, &item.ident, Plain),
            Item::Union(item) => (&item.vis, &item.ident, Plain),
            Item::Macro(item) => {
                let Some(ident) = &item.ident else { return };
                if !item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
                    return;
                }
                (&Visibility::Public(<syn::Token![pub]>::default()), ident, Macro)
            }
            _ => return,
        };
        if matches!(vis, Visibility::Public(_)) && !self.in_tests && !self.in_function {
            let hidden = attributes(item).iter().find_map(doc_hidden);
            let inside = self.inside.clone();
            self.reading.exports.push(Export { name: ident.unraw().to_string(), inside, hidden, what });
        }
    }

    /// Paths and functions in the tokens of a macro or an attribute, which `syn` leaves as they are.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Ident(ident) if ident == "fn" => {
                    if let Some(TokenTree::Ident(name)) = tokens.get(at + 1) {
                        self.name(|reading| &mut reading.functions, name);
                    }
                    at += 1;
                }
                TokenTree::Ident(_) => at = self.token_path(&tokens, at, &[]).max(at + 1),
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// A path that begins with the identifier at `at`; gives where it ends.
    fn token_path(&mut self, tokens: &[TokenTree], mut at: usize, before: &[String]) -> usize {
        let mut segments = before.to_vec();
        let span = tokens[at].span();
        while let Some(TokenTree::Ident(ident)) = tokens.get(at) {
            segments.push(ident.unraw().to_string());
            let is_colon = |at| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
            if !is_colon(at + 1) || !is_colon(at + 2) {
                at += 1;
                break;
            }
            at += 3;
            if let Some(TokenTree::Group(group)) = tokens.get(at)
                && group.delimiter() == Delimiter::Brace
            {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut from = 0;
                while from < inner.len() {
                    from = match inner[from] {
                        TokenTree::Ident(_) => self.token_path(&inner, from, &segments).max(from + 1),
                        _ => from + 1,
                    };
                }
                return at + 1;
            }
        }
        if segments.len() > 1 {
            self.path(span, segments, None);
        }
        at
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        self.under(attributes(item), item.span(), |reader| {
            reader.item(item);
            visit::visit_item(reader, item);
        });
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_some() {
            self.inside.push(item.ident.unraw().to_string());
            visit::visit_item_mod(self, item);
            self.inside.pop();
        } else {
            if self.in_tests {
                let path = item.attrs.iter().find_map(path_attribute);
                self.reading.test_files.push(path.unwrap_or_else(|| item.ident.unraw().to_string()));
            }
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let first = self.reading.paths.len();
        self.use_tree(&item.tree, &[]);
        if matches!(item.vis, Visibility::Public(_)) && !self.in_function {
            let hidden = item.attrs.iter().find_map(doc_hidden);
            for path in self.reading.paths.iter().skip(first) {
                let name = path.used_as.clone().unwrap_or_default();
                let (inside, what) = (self.inside.clone(), Exported::Use(path.segments.clone()));
                self.reading.exports.push(Export { name, inside, hidden, what });
            }
        }
        item.attrs.iter().for_each(|attribute| self.visit_attribute(attribute));
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        use syn::ImplItem::{Const, Fn, Macro, Type};
        let attributes: &[Attribute] = match item {
            Const(item) => &item.attrs,
            Fn(item) => &item.attrs,
            Macro(item) => &item.attrs,
            Type(item) => &item.attrs,
            _ => &[],
        };
        self.under(attributes, item.span(), |reader| visit::visit_impl_item(reader, item));
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.under(&field.attrs, field.span(), |reader| visit::visit_field(reader, field));
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.name(|reading| &mut reading.functions, &signature.ident);
        visit::visit_signature(self, signature);
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let outside = std::mem::replace(&mut self.in_function, true);
        visit::visit_block(self, block);
        self.in_function = outside;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            let segments = path.segments.iter().map(|segment| segment.ident.unraw().to_string());
            self.path(path.span(), segments.collect(), None);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        if invoked.path.segments.last().is_some_and(|last| last.ident == "words") && !self.in_tests {
            self.reading.words.extend(words(invoked.tokens.clone()));
        }
        self.tokens(invoked.tokens.clone());
        visit::visit_macro(self, invoked);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        self.reading.hidden.extend(doc_hidden(attribute));
        if let Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
        }
        visit::visit_attribute(self, attribute);
    }
}

/// `pub State { Queued = "queued", … }` → State and its words.
fn words(tokens: TokenStream) -> Option<(String, Vec<String>)> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let [.., TokenTree::Ident(name), TokenTree::Group(group)] = tokens.as_slice() else { return None };
    let literals = group.stream().into_iter().filter_map(|token| match token {
        TokenTree::Literal(literal) => syn::parse_str::<syn::LitStr>(&literal.to_string()).ok(),
        _ => None,
    });
    Some((name.to_string(), literals.map(|literal| literal.value()).collect()))
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_list_of(attribute: &Attribute, name: &str, word: &str) -> bool {
    matches!(&attribute.meta, Meta::List(list) if list.path.is_ident(name) && list.tokens.to_string() == word)
}

fn is_cfg_test(attribute: &Attribute) -> bool {
    is_list_of(attribute, "cfg", "test") || is_list_of(attribute, "cfg", "doctest")
}

/// The line of a `#[doc(hidden)]`.
fn doc_hidden(attribute: &Attribute) -> Option<usize> {
    let Meta::List(list) = &attribute.meta else { return None };
    let says_hidden = |token| matches!(token, TokenTree::Ident(word) if word == "hidden");
    let is_hidden = list.path.is_ident("doc") && list.tokens.clone().into_iter().any(says_hidden);
    is_hidden.then(|| attribute.span().start().line)
}

fn path_attribute(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(syn::MetaNameValue {
            path,
            value: syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }),
            ..
        }) if path.is_ident("path") => Some(text.value()),
        _ => None,
    }
}

#[test]
fn use_trees_are_spread_out_and_inline_paths_found() {
    let text = "use std::{env, fs::{self, File}, io::Read as _};\nuse redis;\nuse ::chrono::*;\n\
                fn f(x: crate::firing::Fence) { lockcore::Lease::granted(x.y, z::<u8>()) }\n\
                #[derive(thiserror::Error)]\nstruct E;\nmacro_rules! m { ($a:ty) => { $crate::x::{Y, Z::W} } }\n\
                fn g() { select! { a = b::c() => d::<E>(), \"e::f\" => {} } }\n\
                mod inner { use super::h; use super::super::i; fn j() { self::k::l() } }";
    let seen = read(text).unwrap().paths;
    let mut seen: Vec<String> =
        seen.iter().map(|path| format!("{} {}", path.line, path.segments.join("::"))).collect();
    seen.sort();
    let expected = [
        "1 std::env",
        "1 std::fs",
        "1 std::fs::File",
        "1 std::io::Read",
        "2 redis",
        "3 chrono::*",
        "4 crate::firing::Fence",
        "4 lockcore::Lease::granted",
        "5 thiserror::Error",
        "7 crate::x::Y",
        "7 crate::x::Z::W",
        "8 b::c",
        "9 self::h",
        "9 self::inner::k::l",
        "9 super::i",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn comments_strings_and_tests_are_told_from_code() {
    let text = r##"fn f() { let a = "re\"dis::x"; // redis::y
/* redis::z /* nested */ redis::a */ let b = 'r'; let c: &'static str = r#"redis"::"#;
let d = b"redis::b"; let e = '\''; let f = redis::real; }
#[cfg(test)]
mod tests {
    use redis::Client;
    fn inner() { if true {} }
}
struct S { #[cfg(test)] only: redis::Other }
impl S { #[cfg(test)] fn only() { redis::other() } }
/// Of redis::docs.
fn after() {}"##;
    let reading = read(text).unwrap();
    let paths: Vec<_> = reading.paths.iter().map(|path| (path.line, path.segments.join("::"))).collect();
    assert_eq!(paths, [(3, "redis::real".to_owned())]);
    assert_eq!(reading.tests, [4..=8, 9..=9, 10..=10]);
    assert!(reading.functions.iter().any(|function| function.name == "inner" && function.line == 7));
}

#[test]
fn what_is_no_rust_is_told_with_its_line() {
    let (line, error) = read("fn f() {}\nfn {").unwrap_err();
    assert_eq!(line, 2, "{error}");
}
